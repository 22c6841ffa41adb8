import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { NAME_PATTERN, type Diagnostic, type Paths, type WrittenSlot } from '../contract/index.js'
import { located } from './load-file.js'
import { slotFile, type ConfigParts, type Part } from './parts.js'
import { checkSlotFile } from './schema/slot-file.js'
import { readToml } from './toml-file.js'

/** Open files at a time; a folder with thousands of files must not use up the descriptors of the process. */
const PARALLEL_READS = 32

/** Null when there is no such file any more. */
export async function loadSlot (
  paths: Paths, name: string, lastGood: WrittenSlot | null
): Promise<Part<WrittenSlot | null> | null> {
  const file = slotFile(name)
  const read = await readToml(join(paths.slots, `${name}.toml`), file)
  if (read.status === 'missing') return null
  if (read.status === 'bad') return { value: lastGood, diagnostics: [read.diagnostic] }
  const checked = checkSlotFile(name, read.data, 'file')
  return { value: checked.value ?? lastGood, diagnostics: await located(file, read.text, checked.problems) }
}

export async function loadSlots (paths: Paths, previous: ConfigParts | null): Promise<Pick<ConfigParts, 'slots' | 'slotFolder'>> {
  const listed = await slotNames(paths.slots)
  if (listed === null) {
    const diagnostic = { file: 'slots', path: '', message: 'cannot be listed; it must be a folder that the gateway may read' }
    return { slots: previous?.slots ?? new Map(), slotFolder: [diagnostic] }
  }
  const slots = new Map<string, Part<WrittenSlot | null>>()
  for (let i = 0; i < listed.names.length; i += PARALLEL_READS) {
    const names = listed.names.slice(i, i + PARALLEL_READS)
    const loaded = await Promise.all(names.map(name => loadSlot(paths, name, previous?.slots.get(name)?.value ?? null)))
    loaded.forEach((part, k) => { if (part !== null) slots.set(names[k]!, part) })
  }
  return { slots, slotFolder: listed.diagnostics }
}

/** Hidden files are editors' and our own temporary ones. */
async function slotNames (folder: string): Promise<{ names: readonly string[], diagnostics: readonly Diagnostic[] } | null> {
  let entries: readonly string[]
  try {
    entries = await readdir(folder)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? { names: [], diagnostics: [] } : null
  }
  const stems = entries.filter(entry => entry.endsWith('.toml') && !entry.startsWith('.'))
    .map(entry => entry.slice(0, -'.toml'.length)).sort()
  const message = 'has a name that no slot can have: lowercase letters, digits, - or _, at most 32, starting with a letter or digit'
  return {
    names: stems.filter(stem => NAME_PATTERN.test(stem)),
    diagnostics: stems.filter(stem => !NAME_PATTERN.test(stem)).map(stem => ({ file: slotFile(stem), path: '', message }))
  }
}
