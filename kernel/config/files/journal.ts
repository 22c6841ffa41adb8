import { access } from 'node:fs/promises'
import { isAbsolute, join, relative } from 'node:path'
import { z } from 'zod'
import type { Paths } from '../../contract/index.js'
import { syncFolder, writeFileAtomic, type FileOps } from './atomic-file.js'
import { readText } from './read-file.js'
import type { StagedFile } from './staged-file.js'
import { parseFailed } from './write-errors.js'

export interface JournalEntry extends StagedFile {
  readonly root: 'etc' | 'state'
  /** Below its root, for people. */
  readonly file: string
}

export interface Journal {
  /** `finish` from the moment it is written, `undo` once that has failed. */
  readonly direction: 'finish' | 'undo'
  readonly entries: readonly JournalEntry[]
}

const entrySchema = z.strictObject({
  root: z.enum(['etc', 'state']),
  file: z.string(),
  target: z.string(),
  next: z.string().nullable(),
  old: z.string().nullable(),
  before: z.string().nullable(),
  after: z.string().nullable()
})
const journalSchema = z.strictObject({ version: z.literal(1), files: z.array(entrySchema) })

const names = { finish: '.config.journal', undo: '.config.journal.undo' } as const

/** From here on the change happens, whatever happens. */
export async function writeJournal (paths: Paths, entries: readonly JournalEntry[], ops: FileOps): Promise<void> {
  // a home may be moved as a whole before it is used again
  const files = entries.map(entry => ({ ...entry, target: movable(rootOf(paths, entry.root), entry.target) }))
  await writeFileAtomic(join(paths.etc, names.finish), `${JSON.stringify({ version: 1, files }, null, 2)}\n`, { ops })
}

/** Whether there is something to recover; cheap, and needs no lock. */
export async function isUnfinished (paths: Paths): Promise<boolean> {
  const found = await Promise.all(Object.values(names).map(name => access(join(paths.etc, name)).then(() => true, () => false)))
  return found.includes(true)
}

/** Null when nothing is unfinished. Throws `config.parse_error` for a journal that cannot be read. */
export async function readJournal (paths: Paths): Promise<Journal | null> {
  for (const direction of ['undo', 'finish'] as const) {
    const file = names[direction]
    const read = await readText(join(paths.etc, file), file)
    if (read.status === 'missing') continue
    if (read.status === 'bad') throw parseFailed([read.diagnostic])
    const journal = journalSchema.safeParse(jsonOf(read.text))
    if (!journal.success) throw parseFailed([{ file, path: '', message: 'is not the journal of a change; check the files beside it, then remove it' }])
    const entries = journal.data.files.map(entry => ({ ...entry, target: absolute(rootOf(paths, entry.root), entry.target) }))
    return { direction, entries }
  }
  return null
}

/** Renaming needs no space, so that it works on a disk that is full. */
export async function turnJournal (paths: Paths, ops: FileOps): Promise<void> {
  await ops.rename(join(paths.etc, names.finish), join(paths.etc, names.undo))
  await syncFolder(ops, paths.etc)
}

/** The change is over as soon as the name is gone; one that comes back after a power failure finds nothing left to do. */
export async function removeJournal (paths: Paths, direction: Journal['direction'], ops: FileOps): Promise<void> {
  await ops.unlink(join(paths.etc, names[direction]))
  await syncFolder(ops, paths.etc).catch(() => undefined)
}

function rootOf (paths: Paths, root: JournalEntry['root']): string {
  return root === 'etc' ? paths.etc : paths.state
}

function movable (root: string, target: string): string {
  const below = relative(root, target)
  return below.startsWith('..') || isAbsolute(below) ? target : below
}

function absolute (root: string, target: string): string {
  return isAbsolute(target) ? target : join(root, target)
}

function jsonOf (text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
