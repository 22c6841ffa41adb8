import {
  slotConfigSchema, type ChildSlot, type EngineProvider, type NamedSlotConfig, type SlotStatus
} from '../../contract/index.js'
import { isServing } from '../schedule/slot-machine.js'

/** A slot that another one's engine serves (contract `ChildSlot`): no engine, no port and no model choice of its own. */
export interface Shadow {
  /** Follows the anchor's configuration: switched off there, it is disabled here. */
  readonly slot: NamedSlotConfig
  readonly anchor: string
  /** Null when the anchor is not there or its engine serves no such child. */
  readonly child: ChildSlot | null
  /** An operator gave it a file and so perhaps another name. */
  readonly hasFile: boolean
}

type Slots = ReadonlyMap<string, NamedSlotConfig>
type Provider = (name: string) => EngineProvider | undefined

/** Every shadow, by name: one for each child of each anchor, and those that have a file. Pure. */
export function shadowsOf (slots: Slots, provider: Provider): ReadonlyMap<string, Shadow> {
  const shadows = new Map<string, Shadow>()
  for (const file of slots.values()) {
    if (file.served_by === null) continue
    const anchor = slots.get(file.served_by)
    const children = anchor === undefined ? [] : provider(anchor.provider)?.children ?? []
    const child = children.find(({ type }) => type === file.type)
    const slot = anchored(file, anchor, child)
    shadows.set(file.name, { slot, anchor: file.served_by, child: child ?? null, hasFile: true })
  }
  for (const anchor of slots.values()) {
    for (const child of anchor.served_by === null ? provider(anchor.provider)?.children ?? [] : []) {
      const name = `${anchor.name}${child.suffix}`
      const hasFile = [...shadows.values()].some(other => other.anchor === anchor.name && other.child === child)
      if (hasFile || slots.has(name)) continue
      const bare = { ...slotConfigSchema.parse({ type: child.type, served_by: anchor.name }), name, provider: anchor.provider }
      shadows.set(name, { slot: anchored(bare, anchor, child), anchor: anchor.name, child, hasFile: false })
    }
  }
  return shadows
}

/** Slots with an engine of their own. */
export function withEngine (slots: Slots): Slots {
  return new Map([...slots].filter(([, slot]) => slot.served_by === null))
}

/** Names of all slots in configuration order, each shadow behind its anchor. Pure. */
export function namesOf (slots: Slots, shadows: ReadonlyMap<string, Shadow>): readonly string[] {
  const behind = new Map<string, string[]>()
  for (const [name, { anchor }] of shadows) behind.set(anchor, [...behind.get(anchor) ?? [], name])
  return [...slots.keys()].flatMap(name => {
    const shadow = shadows.get(name)
    if (shadow === undefined) return [name, ...behind.get(name) ?? []]
    return slots.has(shadow.anchor) ? [] : [name]
  })
}

/**
 * The anchor's status as its shadow's. An engine that was started without the child does not serve it, whatever the
 * configuration says by now. Pure.
 * @param anchor null when there is none
 * @param launchedAs the anchor's configuration when its engine was started
 */
export function shadowStatus (shadow: Shadow, anchor: SlotStatus | null, launchedAs: NamedSlotConfig | null): SlotStatus {
  const { slot: { name, enabled }, child } = shadow
  const modelId = child?.model ?? null
  const lacksIt = anchor !== null && launchedAs !== null && child?.active(launchedAs) !== true
  if (anchor !== null && enabled && !lacksIt) {
    const address = isServing(anchor.state) ? anchor.address : null
    return { ...anchor, name, modelId, address, engineId: null, configDrift: false }
  }
  return {
    ...nothing,
    name,
    modelId,
    since: anchor?.since ?? 0,
    message: !enabled ? `switched off at slot '${shadow.anchor}'` : `slot '${shadow.anchor}' was started without it; restart that slot`
  }
}

const nothing = {
  state: 'offline', generation: 0, port: null, ports: {}, address: null, engineId: null, engineName: null, engineLabel: null,
  inFlight: 0, waiting: 0, workers: null, lastUsedAt: null, startedAt: null, adopted: false, healthOk: null, configDrift: false,
  held: false, failure: null, progress: null
} as const

function anchored (slot: NamedSlotConfig, anchor: NamedSlotConfig | undefined, child: ChildSlot | undefined): NamedSlotConfig {
  if (anchor === undefined || child === undefined) return { ...slot, enabled: false }
  return {
    ...slot,
    provider: anchor.provider,
    ...(anchor.device === undefined ? {} : { device: anchor.device }),
    ...(anchor.port === undefined ? {} : { port: anchor.port }),
    enabled: slot.enabled && anchor.enabled && child.active(anchor),
    pinned: anchor.pinned,
    model: { ...slot.model, default: child.model }
  }
}
