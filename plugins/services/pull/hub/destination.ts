import { createHash } from 'node:crypto'
import { posix } from 'node:path'
import type { ChosenFile } from './choice.js'
import { modelError } from '../errors.js'
import type { PullSource } from './source.js'

const MAX_NAME = 120

/** The folder below the store, for image models below the image engine's, that a model is pulled into. Pure. */
export function parentOf (source: PullSource): string {
  if (source.imageFolder !== '') return safeName(source.imageFolder)
  return source.capability ?? ''
}

/**
 * A folder for a model id: one name that is safe on every file system. What had to be changed, and what differs from a
 * folder that is there in case only, carries a hash of the id, so that no two models share a folder. Pure.
 */
export function folderOf (modelId: string, existing: readonly string[]): string {
  const plain = safeName(modelId)
  const clashes = existing.some(name => name !== plain && name.toLowerCase() === plain.toLowerCase())
  return plain === modelId && !clashes ? plain : `${plain}-${createHash('sha256').update(modelId).digest('hex').slice(0, 8)}`
}

/**
 * Where each file goes, relative to the store: `<id>/<file>`, or `<capability>/<id>/model.gguf` when a
 * capability is given; relative to the image engine's models for what is one of those. Throws `model.invalid_source` for
 * names that no file can have, or that are one and the same where case does not count. Pure.
 */
export function placesOf (source: PullSource, files: readonly ChosenFile[], existing: readonly string[]): readonly string[] {
  const parent = parentOf(source)
  const folder = source.imageFolder === '' ? posix.join(parent, folderOf(source.modelId, existing)) : parent
  const isGrouped = source.capability !== null && source.imageFolder === ''
  const nameOf = ({ file, kind }: ChosenFile): string => isGrouped ? groupedName(file.path, kind) : plainName(source, file.path)
  const places = files.map(file => posix.join(folder, nameOf(file)))
  const twice = places.find((place, i) => places.findIndex(other => other.toLowerCase() === place.toLowerCase()) !== i)
  if (twice !== undefined) {
    throw modelError('model.invalid_source', `two files of ${source.repo} would be ${twice}; pull them as two models`, { details: { repo: source.repo, path: twice } })
  }
  return places
}

/** llama.cpp finds the other parts by the number in the name, so that stays. */
function groupedName (path: string, kind: ChosenFile['kind']): string {
  const extension = posix.extname(path).toLowerCase()
  if (kind === 'mmproj') return `mmproj${extension}`
  return `model${/-\d{5}-of-\d{5}(?=\.[^.]+$)/.exec(path)?.[0] ?? ''}${extension}`
}

/** Names come from a server: nothing but a single, visible, ordinary name is taken. */
function plainName ({ repo }: PullSource, path: string): string {
  const name = posix.basename(path)
  if (name === '' || name.startsWith('.') || /[\\/\0-\x1f\x7f]/.test(name) || Buffer.byteLength(name) > 200 || path.split('/').includes('..')) {
    throw modelError('model.invalid_source', `${repo} has a file with a name that cannot be kept: ${JSON.stringify(path.slice(0, 100))}`, { details: { repo } })
  }
  return name
}

function safeName (text: string): string {
  return text.replace(/[^A-Za-z0-9._-]+/g, '-').replace(/^[.-]+|(?<![.-])[.-]+$/g, '').slice(0, MAX_NAME) || 'model'
}
