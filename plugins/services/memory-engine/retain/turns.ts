import type { Core } from '../core.js'

const lastEnds = new WeakMap<Core, Map<string, Promise<void>>>()

/** After the retains of the bank that came before: another one between its slices would mix two texts of one document. */
export async function inTurn (core: Core, bankId: string, work: () => Promise<void>): Promise<void> {
  const ends = lastEnds.get(core) ?? new Map<string, Promise<void>>()
  lastEnds.set(core, ends)
  const done = (ends.get(bankId) ?? Promise.resolve()).then(work)
  const end = done.catch(() => {})
  ends.set(bankId, end)
  try {
    await done
  } finally {
    if (ends.get(bankId) === end) ends.delete(bankId)
  }
}
