import { isDeepStrictEqual } from 'node:util'
import { slotConfigSchema, type NamedSlotConfig, type WrittenSlot } from 'svc-gateway/plugin'
import type { SlotChangeView } from './schemas.js'

type Values = ReadonlyMap<string, unknown>
type Slots = ReadonlyMap<string, NamedSlotConfig>

/** What differs between two sets of slots: those that are named, in their order, then every other one that differs. Pure. */
export function slotChanges (before: Slots, after: Slots, named: readonly string[]): readonly SlotChangeView[] {
  const others = [...new Set([...before.keys(), ...after.keys()])].filter(name => !named.includes(name))
  return [...named, ...others].map(name => slotChange(name, before.get(name), after.get(name)))
    .filter(({ slot, changed }) => changed || named.includes(slot))
}

function slotChange (slot: string, before: NamedSlotConfig | undefined, after: NamedSlotConfig | undefined): SlotChangeView {
  // of a slot that is made, only what was decided is worth telling
  const was = valuesOf(before ?? slotConfigSchema.parse({}))
  const is = valuesOf(after ?? slotConfigSchema.parse({}))
  const differs = (key: string): boolean => !isDeepStrictEqual(was.get(key) ?? null, is.get(key) ?? null)
  const keys = [...new Set([...was.keys(), ...is.keys()])].filter(differs)
  const told = (values: Values, exists: boolean, key: string): unknown => exists ? values.get(key) ?? null : null
  return {
    slot,
    before_model: before?.model.default ?? null,
    after_model: after?.model.default ?? null,
    changed: keys.length > 0 || (before === undefined) !== (after === undefined),
    fields: keys.map(key => ({ key, before: told(was, before !== undefined, key), after: told(is, after !== undefined, key) }))
  }
}

/** By dotted key. Free tables are one value. */
function valuesOf ({ name: _, ...slot }: Partial<WrittenSlot>): Values {
  const values = new Map<string, unknown>()
  for (const [key, value] of Object.entries(slot)) {
    const isOpen = key === 'model' || key === 'server' || key === 'npu' || key === 'image'
    if (!isOpen || typeof value !== 'object' || value === null) values.set(key, value)
    else for (const [inner, field] of Object.entries(value)) values.set(`${key}.${inner}`, field)
  }
  return values
}
