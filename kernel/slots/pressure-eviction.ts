import type { Clock, ConfigService, EventBus, HardwareService, Logger, Timer } from '../contract/index.js'
import type { MemoryPool } from '../hardware/memory-pools.js'
import { evictionFor, shortages, type Shortage, type Tenant } from './schedule/pressure.js'
import type { SlotFleet } from './life/slot-fleet.js'
import type { SlotPlans } from './plan/slot-plans.js'

export interface PressureEvictionDeps {
  readonly config: Pick<ConfigService, 'snapshot'>
  readonly plans: SlotPlans
  readonly fleet: SlotFleet
  readonly hardware: HardwareService
  readonly clock: Clock
  readonly events: EventBus
  readonly log: Logger
  /** Of replicas: whether no further one may go. */
  readonly mustStay?: (name: string) => boolean
  /** Never rejects; empty where nothing can be read. */
  readonly readPools: () => Promise<readonly MemoryPool[]>
}

export const SWEEP_MS = 30_000

const kindNames: Readonly<Record<MemoryPool['kind'], string>> = { ram: 'memory', vram: 'video memory', gtt: 'memory for the GPU' }

/**
 * Unloads idle slots while memory is short (`[slots] evict_pressure_mb`): one at a time, and after each
 * it looks again, when the engine is gone and its memory with it. Looks every 30 s; the setting applies live.
 */
export class PressureEviction {
  readonly #deps: PressureEvictionDeps
  #timer: Timer | null = null
  #sweeping: Promise<void> | null = null
  #stopped = false

  constructor (deps: PressureEvictionDeps) {
    this.#deps = deps
  }

  start (): void {
    if (this.#stopped || this.#timer !== null) return
    this.#timer = this.#deps.clock.setTimer(SWEEP_MS, () => {
      this.#timer = null
      void this.sweep().finally(() => this.start())
    })
  }

  /** Begins nothing more. What it stops already is stopped. */
  halt (): void {
    this.#stopped = true
    this.#timer?.cancel()
    this.#timer = null
  }

  /** Resolves when the sweep that runs has ended. */
  async close (): Promise<void> {
    this.halt()
    await this.#sweeping
  }

  /** Joins the sweep that runs. Never rejects. */
  sweep (): Promise<void> {
    return this.#sweeping ??= this.#sweep().finally(() => { this.#sweeping = null })
  }

  async #sweep (): Promise<void> {
    /** Slots that did not go when they were asked to: not asked again in this sweep. */
    const stayed = new Set<string>()
    try {
      for (;;) {
        const short = shortages(await this.#deps.readPools(), this.#floorMb())
        const tenants = this.#tenants().filter(({ slot }) => !stayed.has(slot.name))
        const { clock, hardware: { info } } = this.#deps
        const eviction = this.#stopped ? null : evictionFor(short, tenants, info.gpus, clock.monotonic())
        if (eviction === null) return
        if (!await this.#evict(eviction.name, eviction.shortage)) stayed.add(eviction.name)
      }
    } catch (error) {
      this.#deps.log.error({ err: error }, 'memory pressure could not be checked')
    }
  }

  #floorMb (): number {
    return this.#deps.config.snapshot.svc.slots.evict_pressure_mb
  }

  #tenants (): Tenant[] {
    const { config, plans, fleet, mustStay = () => false } = this.#deps
    return [...config.snapshot.slots.values()].flatMap(slot => {
      const core = fleet.core(slot.name)
      if (core === null || plans.isElsewhere(slot) || mustStay(slot.name)) return []
      return [{ slot, core, provider: plans.provider(slot.name), device: plans.device(slot) }]
    })
  }

  /** Whether it went. */
  async #evict (name: string, { pool, floorMb }: Shortage): Promise<boolean> {
    const { fleet, events, log } = this.#deps
    const what = `${kindNames[pool.kind]}${pool.gpu === '' ? '' : ` (${pool.gpu})`}`
    const reason = `unloaded because ${what} ran low: ${pool.availableMb} MiB left, ${floorMb} wanted`
    if (!await fleet.owner(name).evict(reason)) return false
    const data = { slot: name, pool: pool.kind, gpu: pool.gpu, available_mb: pool.availableMb, floor_mb: floorMb }
    events.emit({ type: 'slot.evicted', severity: 'warn', source: `slot:${name}`, message: `${name} was ${reason}`, data })
    log.warn(data, `slot was ${reason}`)
    return true
  }
}
