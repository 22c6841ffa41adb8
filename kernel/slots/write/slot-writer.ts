import type {
  ChangeOptions, Device, NamedProfile, NamedSlotConfig, SlotProblem
} from '../../contract/index.js'
import { dependentsOf, inUse } from '../shadows/anchor-dependents.js'
import { contextOfFile } from '../plan/context/derived-context.js'
import { checkSlotSet } from './slot-rules.js'
import { SerialQueue } from '../../async/serial-queue.js'
import { preferredProfile } from '../plan/profile/preferred-profile.js'
import { ruleContext, SlotChange } from './slot-draft.js'
import type { SlotWriterDeps } from './slot-writer-deps.js'

type Raw = Readonly<Record<string, unknown>>

/** Writes slot files. Every writer of slots goes through here, one at a time, past the same guards. */
export class SlotWriter {
  readonly #deps: SlotWriterDeps
  readonly #line = new SerialQueue()

  constructor (deps: SlotWriterDeps) {
    this.#deps = deps
  }

  /** Several writes as one (contract `SlotService.change`). Events are told when it is written, and not by a dry run. */
  async change<T> (work: (draft: SlotChange) => Promise<T>, options: ChangeOptions = {}): Promise<T> {
    const { config, events } = this.#deps
    return await this.#line.run(async () => {
      let told: SlotChange['events'] = []
      const result = await config.change(async draft => {
        const change = new SlotChange(this.#deps, draft)
        const value = await work(change)
        change.guard()
        told = change.events
        return value
      }, options)
      if (options.dryRun !== true) for (const event of told) events.emit(event)
      return result
    })
  }

  /** Fills in what the caller left open and persists it: device, context size, preferred profile. */
  async create (name: string, raw: Raw): Promise<NamedSlotConfig> {
    const created = await this.change(draft => draft.create(name, raw))
    return this.#deps.config.snapshot.slots.get(name) ?? created
  }

  async update (name: string, patch: Raw): Promise<NamedSlotConfig> {
    const updated = await this.change(draft => draft.update(name, patch))
    return this.#deps.config.snapshot.slots.get(name) ?? updated
  }

  /** @param force takes along what only its engine serves; without it that is refused with `slot.in_use` */
  delete (name: string, force: boolean): Promise<void> {
    return this.change(async draft => {
      const dependents = dependentsOf(name, draft.config, this.#deps.owned())
      const refusal = force ? null : inUse(name, dependents)
      if (refusal !== null) throw refusal
      for (const { kind, names } of dependents.others) for (const other of names) await kind.drop(draft.config, other)
      for (const slot of [...dependents.slots, name]) await draft.delete(slot)
    })
  }

  /** What would be wrong if these were all the slots there are. */
  check (slots: readonly NamedSlotConfig[], profiles?: ReadonlyMap<string, NamedProfile>): readonly SlotProblem[] {
    const { snapshot } = this.#deps.config
    return checkSlotSet(slots, ruleContext(this.#deps, { svc: snapshot.svc, profiles: profiles ?? snapshot.profiles }))
  }

  /** What would be wrong with a slot that has another model, and is not wrong with it now. */
  refusals (slot: NamedSlotConfig, model: string, profile: string | null): readonly string[] {
    const slots = [...this.#deps.config.snapshot.slots.values()]
    const messages = (all: readonly NamedSlotConfig[]): string[] =>
      this.check(all).filter(({ slot: name }) => name === slot.name).map(({ message }) => message)
    const before = new Set(messages(slots))
    const changed = { ...slot, profile: profile ?? slot.profile, model: { ...slot.model, default: model } }
    return messages(slots.map(other => other.name === slot.name ? changed : other)).filter(message => !before.has(message))
  }

  /** As `contextOfFile` of derived-context.ts, of a slot that is given another model. */
  contextOfFile (slot: NamedSlotConfig, model: string): Promise<number | null> {
    return contextOfFile({ ...slot, model: { ...slot.model, default: model } }, this.#deps)
  }

  /** The profile a model asks for, when it suits the slot; otherwise null, and the skip is told. */
  preferredProfile (slot: NamedSlotConfig, device: Device, modelId: string): string | null {
    const { config, events } = this.#deps
    const { profile, skipped } = preferredProfile(slot, device, modelId, { ...this.#deps, profiles: config.snapshot.profiles })
    if (skipped !== null) events.emit(skipped)
    return profile
  }
}
