import { messageOf, SerialQueue, type ConfigService, type HardwareService, type SlotService } from 'svc-gateway/plugin'
import { capabilityChoices } from '../../services/capabilities/ref.js'
import type { CapabilityOverlay } from '../capabilities/ref.js'
import type { ModelFinder } from './model-finder.js'
import type { ModelIndex } from './model-sources.js'
import type { PendingSlots } from './pending-slots.js'
import { bestPlace, planSlot, type HostFacts, type SlotPlan, type WantedSlot } from './plan.js'
import type { SlotOutcome } from './schemas.js'
import { slotKinds } from './slot-kinds.js'

export interface InstallServices {
  readonly config: ConfigService
  readonly hardware: HardwareService
  readonly finder: ModelFinder
  readonly overlay: CapabilityOverlay
  readonly slots: SlotService
  readonly pending: PendingSlots
}

/** Pulls that were started, by model. */
type Jobs = Map<string, { readonly jobId: string | null, readonly error: string | null }>

/** Makes the slots of a first run. One at a time: what one makes counts for the next. */
export class Installer {
  readonly #services: InstallServices
  readonly #line = new SerialQueue()

  constructor (services: InstallServices) {
    this.#services = services
  }

  /** A row that fails stops none of the others. */
  apply (wanted: readonly WantedSlot[], { pull }: { readonly pull: boolean }): Promise<readonly SlotOutcome[]> {
    return this.#line.run(async () => {
      const index = await this.#models(wanted)
      const jobs: Jobs = new Map()
      const outcomes: SlotOutcome[] = []
      for (const row of wanted) {
        const facts = this.#facts(index, pull)
        const provided = this.#provide(row, planSlot(row, facts), pull, jobs)
        outcomes.push(await provided.catch((error: unknown) => failed(row, error)))
      }
      // a small model may have been there before the last slot that waits for it was made
      for (const id of jobs.keys()) await this.#services.pending.settle(id)
      return outcomes
    })
  }

  /** Selections of the overlay where nothing was chosen yet: what would serve each capability here, switched off. */
  seed (wanted: readonly WantedSlot[]): Promise<void> {
    return this.#line.run(async () => {
      const facts = this.#facts(await this.#models(wanted), false)
      await this.#services.slots.change(async ({ config }) => {
        for (const row of wanted) {
          const { child } = slotKinds[row.kind]
          const model = row.modelId === '' ? null : facts.model(row.modelId)
          const place = bestPlace(row, model, facts)
          const isKnown = row.modelId === '' || model !== null
          if (child === null || place === null || !isKnown || capabilityChoices.of(config)[child] !== undefined) continue
          const { device, provider } = place
          await capabilityChoices.put(config, child, { device, provider, model: model?.id ?? null, enabled: false })
        }
      })
    })
  }

  async #provide (
    row: WantedSlot, plan: SlotPlan, pull: boolean, jobs: Jobs
  ): Promise<SlotOutcome> {
    const { slots, pending } = this.#services
    if (plan.action === 'skip') return { ...blank(row), skipped: plan.reason, detail: plan.detail }
    if (plan.action === 'create') await slots.create(row.slot, plan.config)
    if (plan.action === 'update') await slots.update(row.slot, plan.patch)
    const model = pull ? plan.pull : null
    if (model !== null && !jobs.has(model.id)) jobs.set(model.id, await pending.fetch(model))
    const job = model === null ? null : jobs.get(model.id)!
    return {
      ...blank(row),
      created: plan.action === 'create',
      device: slots.names().includes(row.slot) ? slots.device(row.slot) : null,
      profile: this.#profile(row.slot),
      pull_job_id: job?.jobId ?? null,
      error: job?.error ?? null
    }
  }

  /** The one that the next launch takes, as far as that can be told without the model. */
  #profile (name: string): string | null {
    const { slots } = this.#services
    try {
      return slots.outlook(name).profile
    } catch {
      return slots.config(name).profile
    }
  }

  async #models (wanted: readonly WantedSlot[]): Promise<ModelIndex> {
    return await this.#services.finder.find(wanted.map(({ modelId }) => modelId).filter(id => id !== ''))
  }

  #facts (index: ModelIndex, pull: boolean): HostFacts {
    const { config: { snapshot }, hardware, overlay } = this.#services
    return {
      slots: snapshot.slots,
      hardware: hardware.info,
      defaultDevice: hardware.defaultDevice,
      backends: overlay.backends(),
      places: (type, model) => overlay.places(type, model),
      misfits: (type, model, device) => overlay.misfits(type, model, device),
      model: id => index.get(id) ?? null,
      pull
    }
  }
}

function blank ({ slot, modelId }: WantedSlot): SlotOutcome {
  return {
    slot,
    model_id: modelId,
    created: false,
    device: null,
    profile: null,
    pull_job_id: null,
    skipped: null,
    detail: null,
    error: null
  }
}

function failed (row: WantedSlot, error: unknown): SlotOutcome {
  return { ...blank(row), error: messageOf(error) }
}
