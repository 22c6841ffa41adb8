import { isDeepStrictEqual } from 'node:util'
import { bodyChecksum, type Device, type NamedSlotConfig, type SlotDraft } from 'svc-gateway/plugin'
import { capabilityChoices, type CapabilityChild, type CapabilitySelections } from '../../services/capabilities/ref.js'
import type { NamedStack, StackCapability, StackSlot } from '../../services/stack-catalog/ref.js'
import { contentHash, type StackTarget } from './pointer.js'
import type { CapabilityChangeView, SlotChangeView, SlotTrouble, StackProblem } from './schemas.js'
import { profileBody, profilesNamed } from './self-contained.js'
import { slotChanges } from './slot-changes.js'
import type { StackServices } from './stack-api.js'

/** What applying a stack makes of the configuration. */
export interface StackPlan {
  readonly creates: readonly string[]
  readonly changes: readonly SlotChangeView[]
  /** Slots that are there and down, and that it loads. */
  readonly loads: readonly string[]
  /** It is the active one, and what it spoke of, or keys beside that, was changed since. */
  readonly accepts: boolean
  /** Profiles made from the copies in the stack. */
  readonly profiles: readonly string[]
  readonly capabilities: readonly CapabilityChangeView[]
  readonly target: StackTarget
  readonly contentHash: string
  /** Capabilities that cannot be had here: they are left as they are. */
  readonly refused: readonly StackProblem[]
  readonly warnings: readonly string[]
  /** What would keep slots of the stack from coming up. */
  readonly troubles: readonly SlotTrouble[]
}

export interface PlanContext extends Pick<StackServices, 'overlay' | 'providers'> {
  readonly deviceOf: (slot: string) => Device
  /** Whether an engine of it is up. */
  /** Hash of this stack as it was applied, when it is the active one. */
  readonly appliedHash: string | null
  readonly isUp: (slot: string) => boolean
  /** Why a capability is to be left alone. */
  readonly refused: ReadonlyMap<CapabilityChild, string>
  /** Told before the error of a capability that cannot be had is thrown. */
  readonly refuse: (child: CapabilityChild, error: unknown) => void
}

/**
 * Shapes a draft as a stack wants it, and tells what differs. A dry run and an apply do exactly this on the same kind of
 * draft, so the one predicts the other. Throws what the guards of slots refuse.
 */
export async function shapeStack (draft: SlotDraft, stack: NamedStack, context: PlanContext): Promise<StackPlan> {
  const before = new Map(draft.config.slots)
  const selections = capabilityChoices.of(draft.config)
  const isServing = await servingNow(draft, context)
  const warnings = differingProfiles(draft, stack)
  const profiles = await bringProfiles(draft, stack)
  for (const row of stack.slots) if (row.model !== null) await shapeSlot(draft, row, row.model, context)
  const served = await selectAll(draft, stack, context)
  const { slots } = draft.config
  const capabilities = capabilityChoices.of(draft.config)
  const hash = contentHash(stack, draft.config)
  const target = targetOf(stack, slots, served)
  const changes = slotChanges(before, slots, stack.slots.filter(({ model }) => model !== null).map(({ slot }) => slot))
  return {
    creates: [...slots.keys()].filter(name => !before.has(name)),
    changes,
    profiles,
    capabilities: [...served].map(([child, slot]) => capabilityChange(child, slot, selections, capabilities)),
    target,
    loads: target.load.filter(name => before.has(name) && !context.isUp(name)),
    accepts: context.appliedHash !== null && context.appliedHash !== hash,
    contentHash: hash,
    refused: [...context.refused].map(([child, error]) => ({ target: `capability:${child}`, error })),
    warnings,
    troubles: await troublesOf(draft, [...target.load, ...target.children.map(child => served.get(child)!)], isServing)
  }
}

/** Which slots serve, or would with their next request. */
async function servingNow (draft: SlotDraft, { isUp }: PlanContext): Promise<ReadonlySet<string>> {
  const serving = new Set<string>()
  for (const { name, enabled } of draft.config.slots.values()) {
    if (enabled && (isUp(name) || (await draft.troubles(name)).length === 0)) serving.add(name)
  }
  return serving
}

async function troublesOf (draft: SlotDraft, names: readonly string[], isServing: ReadonlySet<string>): Promise<SlotTrouble[]> {
  const found: SlotTrouble[] = []
  for (const slot of new Set(names)) {
    for (const { what, message } of await draft.troubles(slot)) found.push({ slot, what, message, serves: isServing.has(slot) })
  }
  return found
}

/** A local profile wins; the copy in the stack is for hosts that have none. */
async function bringProfiles ({ config }: SlotDraft, stack: NamedStack): Promise<readonly string[]> {
  const made = profilesNamed(stack).filter(name => !config.profiles.has(name) && Object.hasOwn(stack.profiles, name))
  for (const name of made) await config.putProfile(name, stack.profiles[name]!)
  return made
}

function differingProfiles ({ config }: SlotDraft, stack: NamedStack): string[] {
  return profilesNamed(stack).filter(name => {
    const [local, copy] = [config.profiles.get(name), stack.profiles[name]]
    return local !== undefined && copy !== undefined && bodyChecksum(profileBody(local)) !== bodyChecksum(copy)
  }).map(name => `profile '${name}' of this host differs from the copy in the stack; the one of this host is used`)
}

/** Sets all that a row speaks of. A device that it leaves open stays, or is the best of the host. */
async function shapeSlot (draft: SlotDraft, row: StackSlot, model: string, context: PlanContext): Promise<void> {
  const present = draft.config.slots.get(row.slot)
  const fields = {
    role: row.role, vision: row.vision, mtp: row.mtp, enable_thinking: row.enable_thinking,
    model: { default: model }, server: { extra_args: row.server_extra_args }
  }
  if (present === undefined) {
    const { type, device, provider, profile } = row
    await draft.create(row.slot, withoutNulls({ ...fields, type, device, provider, profile }))
    return
  }
  const device = row.device ?? present.device ?? context.deviceOf(row.slot)
  const provider = row.provider ?? keptProvider(present, device, context)
  const moved = { ...present, device, provider: provider ?? present.provider }
  const preferred = draft.preferredProfile(moved, device, model)
  // the same model as before: what was chosen for it stays, where the row says nothing else
  const chosen = draft.chosenProfile(present, moved)
  const profile = row.profile ?? (model === present.model.default ? chosen ?? preferred : preferred ?? chosen)
  // by itself: with a new device, the profile of the old one would be translated instead of forgotten
  if (profile === null && present.profile !== null) await draft.update(row.slot, { profile: null })
  await draft.update(row.slot, {
    ...fields,
    profile,
    // what the file leaves to the defaults stays so
    ...(provider === present.provider ? {} : { provider }),
    ...(present.enabled ? {} : { enabled: true }),
    ...(row.device === null ? {} : { device })
  })
}

/** The engine that the slot has, as long as it runs on the device; else the one that the device implies. */
function keptProvider (slot: NamedSlotConfig, device: Device, { providers }: PlanContext): string | null {
  const provider = providers.get(slot.provider)
  return provider === undefined || provider.devices.includes(device) ? slot.provider : null
}

async function selectAll (
  draft: SlotDraft, stack: NamedStack, { overlay, refused, refuse }: PlanContext
): Promise<ReadonlyMap<CapabilityChild, string>> {
  const served = new Map<CapabilityChild, string>()
  for (const wanted of stack.slots.flatMap(row => row.capabilities)) {
    const { child } = wanted
    if (refused.has(child)) continue
    try {
      const { slot } = await overlay.select(draft, child, patchOf(wanted))
      served.set(child, slot)
    } catch (error) {
      refuse(child, error)
      throw error
    }
  }
  return served
}

/** Of one that is switched off, only that matters: what it would be need not be here. */
function patchOf ({ child: _, ...wanted }: StackCapability): Parameters<StackServices['overlay']['select']>[2] {
  return wanted.enabled ? wanted : { enabled: false }
}

function capabilityChange (
  child: CapabilityChild, slot: string, before: CapabilitySelections, now: CapabilitySelections
): CapabilityChangeView {
  const [was, is] = [before[child] ?? null, now[child]!]
  return { child, slot, before: was, after: is, changed: !isDeepStrictEqual(was, is) }
}

/** A row without a model still names its slot. What a capability is served by stays up while it is switched on. */
function targetOf (
  { slots: rows }: NamedStack, slots: ReadonlyMap<string, NamedSlotConfig>, served: ReadonlyMap<CapabilityChild, string>
): StackTarget {
  const wanted = rows.flatMap(row => row.capabilities)
  const on = wanted.filter(({ child, enabled }) => enabled && served.has(child)).map(({ child }) => child)
  const named = [...rows.map(({ slot }) => slot), ...on.map(child => served.get(child)!)]
  const anchors = named.map(name => slots.get(name)?.served_by ?? null).filter(name => name !== null)
  return {
    load: rows.filter(({ model }) => model !== null).map(({ slot }) => slot),
    children: on,
    keep: [...new Set([...named, ...anchors])].filter(name => slots.has(name))
  }
}

function withoutNulls (row: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const kept = Object.entries(row).map(([key, value]) => [key, isTable(value) ? withoutNulls(value) : value] as const)
  return Object.fromEntries(kept.filter(([, value]) => value !== null && !(isTable(value) && Object.keys(value).length === 0)))
}

function isTable (value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
