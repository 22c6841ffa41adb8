import {
  deviceSchema, svcError, type ConfigDraft, type Device, type LaunchTrouble, type NamedProfile,
  type NamedSlotConfig, type NewEvent, type SlotDraft, type SlotProblem, type SlotRule
} from '../../contract/index.js'
import { changedContext, createdContext } from '../plan/context/derived-context.js'
import { chosenProfile, deviceOfProfile, keepsProfile, type MoveContext } from '../plan/profile/device-profile.js'
import { checkSlotSet, slotProblemError, type SlotSetContext } from './slot-rules.js'
import { preferredProfile } from '../plan/profile/preferred-profile.js'
import { modelTable } from '../plan/context/model-table.js'
import type { SlotWriterDeps } from './slot-writer-deps.js'

type Raw = Readonly<Record<string, unknown>>

/**
 * Keys that a slot's profile depends on: a write that touches none of them leaves a profile that does not fit alone. So it is
 * with its model, and with what runs it.
 */
const profileKeys = ['profile', 'device', 'backend', 'type', 'provider']

/** Slots as they would be: fills in what callers leave open, and holds the whole against the rules at the end. */
export class SlotChange implements SlotDraft {
  readonly config: ConfigDraft
  /** To be told once it is written. */
  readonly events: NewEvent[] = []
  readonly #deps: SlotWriterDeps
  /** Slots that were written, each with the rules that do not concern the write. */
  readonly #touched = new Map<string, ReadonlySet<SlotRule>>()

  constructor (deps: SlotWriterDeps, config: ConfigDraft) {
    this.#deps = deps
    this.config = config
  }

  async create (name: string, raw: Raw): Promise<NamedSlotConfig> {
    const draft = this.config.checkSlot(name, raw)
    const device = this.#deviceFor(draft)
    const profile = draft.profile ?? this.preferredProfile(draft, device, draft.model.default)
    const slot = { ...draft, device, profile }
    this.#touched.set(name, new Set())
    return await this.config.createSlot(name, {
      ...raw,
      device,
      ...(profile === null ? {} : { profile }),
      ...await createdContext(slot, raw, this.#deps)
    })
  }

  async update (name: string, patch: Raw): Promise<NamedSlotConfig> {
    const previous = this.config.slots.get(name)
    const change = previous === undefined ? {} : { ...this.#adopted(previous, patch), ...this.#coherence(previous, patch) }
    const before = this.#touched.get(name)
    const leftAlone = rulesLeftAlone(patch)
    this.#touched.set(name, before === undefined ? leftAlone : new Set([...leftAlone].filter(rule => before.has(rule))))
    const context = previous === undefined ? {} : await changedContext(previous, patch, this.#deps)
    const next = await this.config.patchSlot(name, { ...patch, ...change, ...context })
    const moved = previous !== undefined && patch.profile === undefined && this.#place(next) !== this.#place(previous)
    if (!moved || keepsProfile(previous, next, this.#moveContext())) return next
    return await this.config.patchSlot(name, { profile: null })
  }

  async delete (name: string): Promise<void> {
    await this.config.deleteSlot(name)
    this.#touched.delete(name)
  }

  preferredProfile (slot: NamedSlotConfig, device: Device, modelId: string | null): string | null {
    const { profile, skipped } = preferredProfile(slot, device, modelId, { ...this.#deps, profiles: this.config.profiles })
    if (skipped !== null) this.events.push(skipped)
    return profile
  }

  chosenProfile (before: NamedSlotConfig, after: NamedSlotConfig): string | null {
    return chosenProfile(before, after, this.#moveContext())
  }

  /** A slot that another one's engine serves comes up with that one. */
  troubles (name: string): Promise<readonly LaunchTrouble[]> {
    return this.#deps.troubles(this.config.slots.get(name)?.served_by ?? name, this.config)
  }

  /** Throws what is wrong with a slot of this change. What was wrong with others before does not stop it. */
  guard (): void {
    if (this.#touched.size === 0) return
    const problem = this.check().find(({ slot, rule }) => this.#touched.get(slot)?.has(rule) === false)
    if (problem !== undefined) throw slotProblemError(problem)
    for (const [slot, leftAlone] of this.#touched) {
      const missing = !leftAlone.has('profile') ? this.#deps.imageProblem(slot, this.config) : null
      if (missing !== null) throw svcError('slot.config_error', `slot '${slot}': ${missing}`, { details: { slot } })
    }
  }

  check (slots: readonly NamedSlotConfig[] = [...this.config.slots.values()]): readonly SlotProblem[] {
    return checkSlotSet(slots, ruleContext(this.#deps, this.config))
  }

  /** With another model comes the profile that it prefers, unless the patch says otherwise. */
  #adopted (previous: NamedSlotConfig, patch: Raw): { profile?: string } {
    const model = modelTable(patch.model).default
    if (typeof model !== 'string' || model === previous.model.default) return {}
    if (patch.profile !== undefined || patch.device !== undefined) return {}
    const profile = this.preferredProfile(previous, this.#deps.defaultDevice(previous), model)
    return profile === null ? {} : { profile }
  }

  /** A profile that is chosen alone brings its device along. */
  #coherence (previous: NamedSlotConfig, patch: Raw): { device?: Device } {
    if (typeof patch.profile !== 'string') return {}
    const profile = this.#profile(patch.profile)
    if (profile === null && patch.profile !== previous.profile) {
      throw svcError('profiles.not_found', `no such profile: '${patch.profile}'`, { param: 'profile', details: { profile: patch.profile } })
    }
    // null takes the key out; what is no device at all is refused when the result is checked
    const { device: _, ...undecided } = previous
    const wanted = patch.device === null ? this.#deps.defaultDevice(undecided) : deviceSchema.safeParse(patch.device).data
    const said = { device: wanted !== undefined, profile: wanted !== undefined || patch.profile !== previous.profile }
    const device = deviceOfProfile(wanted ?? this.#deps.defaultDevice(previous), profile, said)
    return device === null ? {} : { device }
  }

  #place (slot: NamedSlotConfig): string {
    return `${this.#deps.defaultDevice(slot)} ${slot.provider} ${slot.type}`
  }

  #moveContext (): MoveContext {
    const { defaultDevice, models, providers } = this.#deps
    return {
      profiles: this.config.profiles,
      providers,
      device: defaultDevice,
      preferred: ({ model: { default: id } }) => (id === null ? undefined : models.get(id)?.defaults.profile) ?? null
    }
  }

  /** A profile that was chosen with no device says which. */
  #deviceFor (draft: NamedSlotConfig): Device {
    const device = this.#deps.defaultDevice(draft)
    return deviceOfProfile(device, this.#profile(draft.profile), { device: draft.device !== undefined, profile: true }) ?? device
  }

  #profile (name: string | null): NamedProfile | null {
    return name === null ? null : this.config.profiles.get(name) ?? null
  }
}

/** What the rules ask besides the configuration. */
export interface RuleDeps extends Pick<SlotWriterDeps, 'providers' | 'gpus' | 'runtime' | 'defaultDevice'> {
  readonly models: Pick<SlotWriterDeps['models'], 'get'>
}

/** What the rules look at, from the configuration as it is or as it would be. */
export function ruleContext (
  { providers, models, gpus, runtime, defaultDevice }: RuleDeps, { profiles, svc }: Pick<ConfigDraft, 'profiles' | 'svc'>
): SlotSetContext {
  return {
    profiles,
    providers,
    model: id => models.get(id),
    gpus: gpus(),
    runtime,
    device: defaultDevice,
    maxSlots: svc.slots.max_slots,
    gatewayPort: svc.server.port
  }
}

function rulesLeftAlone (patch: Raw): ReadonlySet<SlotRule> {
  const touches = (keys: readonly string[]): boolean => keys.some(key => Object.hasOwn(patch, key))
  const model = Object.hasOwn(modelTable(patch.model), 'default')
  return new Set<SlotRule>([
    ...touches(profileKeys) ? [] : ['profile' as const],
    ...touches(['runtime', 'runtime_options', 'provider']) ? [] : ['runtime' as const],
    ...model || touches(['type', 'provider']) ? [] : ['model' as const]
  ])
}
