import { join } from 'node:path'
import { nameSchema, svcError, type Logger, type Paths, type SvcError, type WrittenSlot } from '../../contract/index.js'
import { slotFile } from '../parts/config-parts.js'
import { checkShape, invalid } from '../check/shape-check.js'
import { checkSlotFile, foldSlotFile, type SlotWords } from '../schema/slot-file.js'
import { patchSlotFile } from '../schema/slot-patch.js'
import { readToml, type Table } from '../toml/toml-file.js'
import { parseFailed } from '../files/write-errors.js'

export function slotPath (paths: Paths, name: string): string {
  return join(paths.slots, `${name}.toml`)
}

/** Throws `validation.invalid` with path `name`; the name becomes a file name, so nothing else may get through. */
export function requireSlotName (name: string): void {
  const { problems } = checkShape(nameSchema, name, { audience: 'client', userPath: () => ['name'] })
  if (problems.length > 0) throw invalid('slot name', problems)
}

export function slotNotFound (name: string): SvcError {
  return svcError('slot.not_found', `no such slot: ${name}; see GET /api/slots`, { details: { slot: name } })
}

/** The file as the user wrote it, or null. Throws `config.parse_error`. */
export async function readSlotRaw (paths: Paths, name: string): Promise<{ readonly text: string, readonly data: Table } | null> {
  const read = await readToml(slotPath(paths, name), slotFile(name))
  if (read.status === 'bad') throw parseFailed([read.diagnostic])
  return read.status === 'missing' ? null : read
}

/** What `createSlotFile` would make, writing nothing. Throws `validation.invalid` or `validation.unknown_keys`. */
export function previewSlot (
  name: string, config: Table, words: SlotWords
): { readonly slot: WrittenSlot, readonly raw: Table } {
  requireSlotName(name)
  const { raw, problems, userPath } = patchSlotFile({}, config, words)
  const checked = checkSlotFile(name, raw, 'client', foldSlotFile(raw, words), userPath)
  if (checked.value === null || problems.length > 0) throw invalid(`slot ${name}`, [...problems, ...checked.problems])
  return { slot: checked.value, raw }
}

export function slotExists (name: string): SvcError {
  return svcError('slot.already_exists', `slot ${name} already exists; change it, or choose another name`, { details: { slot: name } })
}

/** A slot file with a patch in it, as text. Throws `validation.invalid` or `validation.unknown_keys`. Pure but for the log. */
export async function patchedSlot (
  name: string, file: { readonly text: string, readonly data: Table }, patch: Table, log: Logger,
  words: SlotWords
): Promise<{ readonly slot: WrittenSlot, readonly text: string }> {
  const patched = patchSlotFile(file.data, patch, words)
  const checked = checkSlotFile(name, patched.raw, 'client', foldSlotFile(patched.raw, words), patched.userPath)
  const problems = [...patched.problems, ...checked.problems]
  if (checked.value === null || problems.length > 0) throw invalid(`slot ${name}`, problems)
  const { patchToml } = await import('../toml/toml-patch.js')
  const text = patchToml(file.text, patched.raw, reason => {
    log.warn({ file: slotFile(name), reason }, 'the file was rewritten; its comments are lost')
  })
  return { slot: checked.value, text }
}
