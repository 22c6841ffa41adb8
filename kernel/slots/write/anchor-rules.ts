import type { NamedSlotConfig } from '../../contract/index.js'
import type { Report, SlotSetContext } from './slot-rule-context.js'

type Named = ReadonlyMap<string, NamedSlotConfig>

/** A slot that another one's process serves needs that other one, and its provider must serve such children. */
export function checkAnchors (slots: readonly NamedSlotConfig[], context: SlotSetContext, report: Report): void {
  const named = new Map(slots.map(slot => [slot.name, slot]))
  for (const slot of slots) {
    if (slot.served_by === null) checkAnchor(slot, named, context, report)
    else checkServed(slot, slot.served_by, named, context, report)
  }
}

function checkAnchor (slot: NamedSlotConfig, named: Named, context: SlotSetContext, report: Report): void {
  const children = context.providers.get(slot.provider)?.children ?? []
  if (children.some(child => child.type === slot.type)) {
    report(slot, 'anchor', 'slot.config_error',
      `${slot.type} slots of provider ${slot.provider} run in the engine of another slot: name it in \`served_by\``, { param: 'served_by' })
  }
  for (const child of children) {
    const namesake = named.get(`${slot.name}${child.suffix}`)
    if (namesake === undefined || namesake.served_by === slot.name) continue
    report(namesake, 'anchor', 'slot.config_error',
      `'${namesake.name}' is the ${child.type} slot in the engine of slot '${slot.name}'; choose another name`,
      { param: 'name', details: { anchor: slot.name } })
  }
}

function checkServed (slot: NamedSlotConfig, by: string, named: Named, context: SlotSetContext, report: Report): void {
  const anchor = named.get(by)
  const refuse = (message: string): void =>
    report(slot, 'anchor', 'slot.config_error', message, { param: 'served_by', details: { anchor: by } })
  if (anchor === undefined) refuse(`slot '${slot.name}' is served by '${by}', but there is no such slot`)
  else if (anchor.served_by !== null) refuse(`slot '${by}' runs no engine of its own: it is served by '${anchor.served_by}'`)
  else if (context.providers.get(anchor.provider)?.children?.every(child => child.type !== slot.type) ?? false) {
    refuse(`the engine of slot '${by}' serves no ${slot.type} slots besides its own`)
  }
}
