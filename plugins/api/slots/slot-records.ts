import {
  messageOf, type Clock, type ConfigService, type DispatchService, type GatewayInfo, type PullState, type SlotOutlook,
  type SlotService
} from 'svc-gateway/plugin'
import { mapBounded, withinMs } from './probe-limits.js'
import { engineMemoryMb } from './engine-memory.js'
import { slotRecord, type AnchorFacts, type SlotFacts } from './record.js'
import type { SlotRecord, SlotRow } from './record-schema.js'
import { fileOf, requireSlot } from './slot-lookup.js'
import { upstreamRows } from './upstream-row.js'

export interface RecordServices {
  readonly config: ConfigService
  readonly slots: SlotService
  readonly dispatch: DispatchService
  readonly info: GatewayInfo
  readonly clock: Clock
}

const PROBES_AT_A_TIME = 8
const PROBE_MS = 8_000

/** Reads what records are made of. What cannot be found out in time is left out; nothing here fails a list. */
export class SlotRecords {
  readonly #services: RecordServices

  constructor (services: RecordServices) {
    this.#services = services
  }

  /** Slots in configuration order, then upstreams. */
  async list (): Promise<SlotRow[]> {
    const names = this.#services.slots.names()
    const records = await mapBounded(names, PROBES_AT_A_TIME, name => this.#record(name))
    return [...records.filter(record => record !== null), ...this.#upstreams()]
  }

  /** A slot, else an upstream of that name. Throws `slot.not_found`. */
  async find (name: string): Promise<SlotRow> {
    if (this.#services.slots.names().includes(name)) return await this.detail(name)
    return this.#upstreams().find(row => row.name === name) ?? await this.detail(name)
  }

  async detail (name: string): Promise<SlotRecord> {
    requireSlot(this.#services, name)
    const drift = this.#services.slots.status(name).configDrift
    return { ...slotRecord(await this.#facts(name)), config_drift: drift }
  }

  /** MiB of the running engine; 0 without one, null when it cannot be told. */
  memoryMb (name: string): Promise<number | null> {
    const { info, slots } = this.#services
    const { engineId } = slots.status(name)
    return engineId === null ? Promise.resolve(0) : engineMemoryMb(info.runtime.driver, engineId)
  }

  #upstreams (): SlotRow[] {
    const { dispatch, slots } = this.#services
    return upstreamRows(dispatch.upstreams(), new Set(slots.names()))
  }

  /** Null for a slot that was deleted while the others were read. */
  async #record (name: string): Promise<SlotRecord | null> {
    return this.#services.slots.names().includes(name) ? slotRecord(await this.#facts(name)) : null
  }

  async #facts (name: string): Promise<SlotFacts> {
    const { slots, info, config } = this.#services
    const slot = slots.config(name)
    const status = slots.status(name)
    const launch = this.#launch(name)
    const facts = {
      config: slot,
      status,
      ...launch,
      device: slots.device(name),
      provider: slots.provider(name),
      metrics: slots.metrics(name),
      runtime: info.runtime.driver === 'process' ? 'process' as const : 'container' as const,
      anchor: this.#anchor(slot.served_by),
      diagnostics: config.snapshot.diagnostics.filter(({ file }) => file === fileOf(name))
    }
    // what has to be waited for comes last: all of the above belongs to one moment
    const [memMb, imageState] = await Promise.all([
      status.engineId === null ? 0 : engineMemoryMb(info.runtime.driver, status.engineId),
      launch.outlook?.image == null ? null : this.#imageState(name)
    ])
    return { ...facts, memMb, imageState }
  }

  #launch (name: string): { outlook: SlotOutlook | null, argv: readonly string[] | null, problem: string | null } {
    const { slots } = this.#services
    try {
      return { outlook: slots.outlook(name), argv: slots.resolved(name).argv, problem: null }
    } catch (error) {
      return { outlook: null, argv: null, problem: messageOf(error) }
    }
  }

  #anchor (name: string | null): AnchorFacts | null {
    const { slots } = this.#services
    if (name === null || !slots.names().includes(name)) return null
    return { config: slots.config(name), state: slots.status(name).state, provider: slots.provider(name) }
  }

  async #imageState (name: string): Promise<PullState | null> {
    const { slots, clock } = this.#services
    const status = await withinMs(clock, PROBE_MS, null, () => slots.pullStatus(name))
    return status?.state ?? null
  }
}
