import { join } from 'node:path'
import { NAME_PATTERN, type Paths, type WrittenSlot } from '../../contract/index.js'
import { located } from './load-file.js'
import { loadFolder, unlistable } from './load-folder.js'
import { slotFile, type ConfigParts, type SlotPart } from '../parts/config-parts.js'
import { checkSlotFile, foldSlotFile, wordsForReading, type SlotWords } from '../schema/slot-file.js'
import { readToml } from '../toml/toml-file.js'

/** Null when there is no such file any more. */
export async function loadSlot (
  paths: Paths, name: string, lastGood: WrittenSlot | null, words: SlotWords
): Promise<SlotPart | null> {
  const file = slotFile(name)
  const read = await readToml(join(paths.slots, `${name}.toml`), file)
  if (read.status === 'missing') return null
  if (read.status === 'bad') return { value: lastGood, diagnostics: [read.diagnostic] }
  const folded = foldSlotFile(read.data, wordsForReading(words))
  const checked = checkSlotFile(name, read.data, 'file', folded)
  const part = { value: checked.value ?? lastGood, diagnostics: await located(file, read.text, checked.problems) }
  return folded.hasForeignWord ? { ...part, hasForeignWord: true } : part
}

export async function loadSlots (paths: Paths, previous: ConfigParts | null, words: SlotWords): Promise<Pick<ConfigParts, 'slots' | 'slotFolder'>> {
  const loaded = await loadFolder({
    path: paths.slots,
    shown: 'slots',
    pattern: NAME_PATTERN,
    misnamed: 'has an invalid slot name: lowercase letters, digits, - or _, at most 32, starting with a letter or digit',
    load: name => loadSlot(paths, name, previous?.slots.get(name)?.value ?? null, words)
  })
  if (loaded === null) return { slots: previous?.slots ?? new Map(), slotFolder: unlistable('slots') }
  return { slots: loaded.files, slotFolder: loaded.diagnostics }
}
