import { stat } from 'node:fs/promises'
import {
  isSvcError, messageOf, SerialQueue, type ActivityLog, type ConfigService, type EventBus, type GatewayEvent, type Logger,
  type ModelRegistry, type NamedSlotConfig, type SlotService
} from 'svc-gateway/plugin'
import type { ModelPulls, PullSnapshot } from '../../services/pull/ref.js'
import type { InstallModel } from './model-sources.js'
import { noPending } from './plan.js'

export interface PendingServices {
  readonly activity: ActivityLog
  readonly config: ConfigService
  readonly events: EventBus
  readonly log: Logger
  readonly models: ModelRegistry
  readonly pulls: ModelPulls
  readonly slots: SlotService
  /** Load a slot when it has got its model. */
  readonly loads: () => boolean
  /** How to get a model; null if unknown. */
  readonly find: (id: string) => Promise<InstallModel | null>
}

/**
 * Slots that wait for their model. The wish stands in the slot's own file (`[meta] pending_model`), so it outlives the
 * gateway; the pull itself is the pull service's. However the model is pulled, the slots that wait for it get it.
 */
export class PendingSlots {
  readonly #services: PendingServices
  readonly #stopping = new AbortController()
  /** Decisions are made one after the other. */
  readonly #decisions = new SerialQueue()
  readonly #loads = new SerialQueue()
  #following: Promise<void> = Promise.resolve()

  constructor (services: PendingServices) {
    this.#services = services
  }

  /** Takes up what the last run of the gateway left, and follows the pulls from now on. Waits for nothing. */
  start (): void {
    this.#following = this.#follow(this.#services.events.subscribe({ type: 'pull.*' }, this.#stopping.signal))
    void this.#inLine(() => this.#resume())
  }

  async close (): Promise<void> {
    this.#stopping.abort()
    await Promise.all([this.#following, this.#decisions.idle()])
    await this.#loads.idle()
  }

  /** Starts the pull of a model, or joins it. The id of its job, or why there is none; the slots that wait are told that, too. */
  async fetch (model: InstallModel): Promise<{ readonly jobId: string | null, readonly error: string | null }> {
    const { signal } = this.#stopping
    try {
      const { snapshot } = await this.#services.pulls.start(model.request, signal)
      return { jobId: snapshot.id, error: null }
    } catch (error) {
      const reason = isSvcError(error) ? `${error.message} (${error.code})` : messageOf(error)
      if (!signal.aborted) await this.#inLine(() => this.#park(model.id, reason))
      return { jobId: null, error: reason }
    }
  }

  /** Brings the slots that wait for a model in line with how far its pull is. */
  settle (modelId: string): Promise<void> {
    return this.#inLine(() => this.#settle(modelId))
  }

  async #follow (events: AsyncIterable<GatewayEvent>): Promise<void> {
    for await (const { type, data } of events) {
      if (type === 'pull.progress') continue
      const { model_id: id } = data
      // events that were lost may have been about any of them
      for (const model of typeof id === 'string' ? [id] : this.#pendingModels()) await this.settle(model)
    }
  }

  async #resume (): Promise<void> {
    for (const id of this.#pendingModels()) {
      await this.#settle(id)
      const pull = this.#pullOf(id)
      const isWanted = this.#waiting(id).some(({ meta }) => meta?.pull_wanted === true && meta.pull_failed === null)
      if (!isWanted || (pull !== null && pull.state !== 'completed')) continue
      const model = await this.#services.find(id)
      // it parks the slots through the line that this stands in, so it must not be waited for here
      if (model !== null) void this.fetch(model)
      else await this.#park(id, `no source is known for '${id}'`)
    }
  }

  async #settle (id: string): Promise<void> {
    if (this.#waiting(id).length === 0) return
    const pull = this.#pullOf(id)
    if (pull?.state === 'queued' || pull?.state === 'running') await this.#unpark(id)
    else if (await this.#isHere(id)) await this.#activate(id)
    else if (pull?.state === 'failed') await this.#park(id, `${pull.error ?? 'for an unknown reason'}${pull.error_code === null ? '' : ` (${pull.error_code})`}`)
    else if (pull?.state === 'cancelled') await this.#park(id, 'the pull was cancelled')
  }

  async #activate (id: string): Promise<void> {
    const { activity, slots, models } = this.#services
    const ready: string[] = []
    for (const slot of this.#waiting(id)) {
      const { name } = slot
      const row = { category: 'install', action: 'install.activate', target: name, actor: 'system' }
      await activity.audited(row, async note => {
        note({ before: { model: slot.model.default, enabled: slot.enabled } })
        const { model, enabled } = await slots.update(name, activation(slot, id, models.get(id)?.metadata.context_length))
        note({ after: { model: model.default, enabled } })
        if (enabled) ready.push(name)
      }).catch((error: unknown) => this.#parkSlot(slot, `its model could not be set: ${messageOf(error)}`))
    }
    if (this.#services.loads()) this.#load(ready)
  }

  /** One after the other, in the background; the slot's own state tells what fails. Images take the GPU only when asked for. */
  #load (names: readonly string[]): void {
    const { slots } = this.#services
    void this.#loads.run(async () => {
      for (const name of names) {
        if (this.#stopping.signal.aborted || !slots.names().includes(name) || slots.config(name).type === 'image') continue
        await slots.ensureReady(name, this.#stopping.signal).catch(() => undefined)
      }
    })
  }

  async #park (id: string, reason: string): Promise<void> {
    for (const slot of this.#waiting(id)) await this.#parkSlot(slot, reason)
  }

  async #parkSlot ({ name, meta }: NamedSlotConfig, reason: string): Promise<void> {
    const { events, log, slots } = this.#services
    if (meta?.pull_failed === reason) return
    await slots.update(name, { meta: { pull_failed: reason } })
      .catch((error: unknown) => log.warn({ slot: name, err: error }, `a failed pull could not be saved to the file of a slot: ${messageOf(error)}`))
    events.emit({
      type: 'install.parked', severity: 'error', source: `slot:${name}`, message: `slot '${name}' stays without its model: ${reason}`,
      data: { slot: name, model: meta?.pending_model ?? null, error: reason }
    })
  }

  async #unpark (id: string): Promise<void> {
    for (const { name, meta } of this.#waiting(id)) {
      if (meta?.pull_failed != null) await this.#services.slots.update(name, { meta: { pull_failed: null } })
    }
  }

  #waiting (id: string): NamedSlotConfig[] {
    return [...this.#services.config.snapshot.slots.values()].filter(({ meta }) => meta?.pending_model === id)
  }

  #pendingModels (): ReadonlySet<string> {
    return new Set([...this.#services.config.snapshot.slots.values()].flatMap(({ meta }) => meta?.pending_model ?? []))
  }

  /** Null when it was never pulled. */
  #pullOf (id: string): PullSnapshot | null {
    try {
      return this.#services.pulls.status(id)
    } catch {
      return null
    }
  }

  async #isHere (id: string): Promise<boolean> {
    const row = this.#services.models.get(id)
    return row !== undefined && await stat(row.path).then(stats => stats.isFile(), () => false)
  }

  #inLine (work: () => Promise<void>): Promise<void> {
    return this.#decisions.run(work).catch((error: unknown) => {
      this.#services.log.error({ err: error }, `slots that wait for their model could not be updated: ${messageOf(error)}`)
    })
  }
}

/**
 * The change that gives a slot the model it waited for. One that was given another in the meantime keeps it. A context that
 * is larger than the model's own turns out only now, when its header can be read. Pure.
 */
export function activation (slot: NamedSlotConfig, model: string, nativeContext: unknown): Readonly<Record<string, unknown>> {
  const { default: held, context_size: context } = slot.model
  if (held !== null) return { meta: noPending }
  const isTooLong = typeof nativeContext === 'number' && nativeContext >= 128 && context !== null && context > nativeContext
  const length = isTooLong ? { context_size: nativeContext } : {}
  const derived = context === null ? {} : { context_for: slot.meta?.context_for ?? null }
  return { enabled: true, model: { default: model, ...length }, meta: { ...noPending, ...derived } }
}
