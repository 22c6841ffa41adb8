import {
  capabilityChildren, svcError, type CapabilityChild, type ConfigDraft, type NamedSlotConfig, type SvcError
} from '../../contract/index.js'

/** What is configured to be served by a slot's engine, and by no other. */
export interface AnchorCompany {
  /** Slots with a file that names it in `served_by`. */
  readonly slots: readonly string[]
  /** Capabilities that are switched on on its device. */
  readonly capabilities: readonly CapabilityChild[]
}

/**
 * Who goes with a slot when it is deleted. Children without a file of their own are not counted: they are part of the slot.
 * Pure.
 */
export function companyOf (name: string, { slots, capabilities }: Pick<ConfigDraft, 'slots' | 'capabilities'>): AnchorCompany {
  const anchor = slots.get(name)
  const served = [...slots.values()].filter(slot => slot.served_by === name).map(slot => slot.name)
  if (anchor?.device !== 'npu' || anchor.served_by !== null || anchor.type !== 'llm') return { slots: served, capabilities: [] }
  const isReplaced = [...slots.values()].some(other => other.name !== name && couldServe(other, anchor))
  const chosen = isReplaced ? [] : capabilityChildren.filter(child => {
    const selection = capabilities[child]
    return selection?.enabled === true && selection.device === 'npu' && selection.provider === anchor.provider
  })
  return { slots: served, capabilities: chosen }
}

function couldServe ({ device, type, provider, served_by: by }: NamedSlotConfig, anchor: NamedSlotConfig): boolean {
  return by === null && device === anchor.device && type === anchor.type && provider === anchor.provider
}

/** Null if none. */
export function inCompany (name: string, { slots, capabilities }: AnchorCompany): SvcError | null {
  if (slots.length + capabilities.length === 0) return null
  const who = [...slots.map(slot => `slot '${slot}'`), ...capabilities.map(child => `capability '${child}'`)].join(', ')
  return svcError('slot.in_use', `${who} runs in the engine of slot '${name}'; move or delete that first, or take it along with \`svc slot delete ${name} --force\``,
    { details: { slot: name, slots, capabilities } })
}
