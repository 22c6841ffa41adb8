import type { NamedSlotConfig, SvcConfig } from '../contract/index.js'
import type { Problem } from './shape-check.js'
import { valueAt } from './table-path.js'
import type { Table } from './toml-file.js'

const PATH = ['memory', 'graph', 'extraction_slot']

/** A null puts the default back, which needs no slot to be there. Pure. */
export function namesExtractionSlot (patch: Table): boolean {
  return typeof valueAt(patch, PATH) === 'string'
}

type Memory = Pick<SvcConfig, 'memory'>

/**
 * Why a slot cannot extract the graph; null when it can, and for one that was named before: it may be away for now. Only an
 * enabled llm slot answers `svc/<slot>`. Pure.
 */
export function extractionSlotProblem (
  next: Memory, previous: Memory | null, slots: ReadonlyMap<string, NamedSlotConfig>
): Problem | null {
  const { extraction_slot: name } = next.memory.graph
  if (name === previous?.memory.graph.extraction_slot) return null
  const usable = [...slots.values()].filter(({ type, enabled }) => type === 'llm' && enabled).map(slot => slot.name)
  if (usable.includes(name)) return null
  const there = usable.length === 0 ? 'there is none yet' : `one of ${usable.slice(0, 20).join(', ')}`
  return { path: PATH, message: `must be an enabled llm slot: ${there}`, unknown: false }
}
