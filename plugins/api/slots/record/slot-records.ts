import {
  KeptJson, messageOf, type Clock, type ConfigService, type Diagnostic, type DispatchService, type GatewayInfo, type PullState,
  type SlotOutlook, type SlotService, type UpstreamService
} from 'svc-gateway/plugin'
import { mapBounded, startDeadline, type Within } from './probe-limits.js'
import { RemoteSlots } from './remote-slots.js'
import { slotRecord, type AnchorFacts, type SlotFacts } from './record.js'
import type { RemoteSlotRow, SlotRecord, SlotRow } from './record-schema.js'
import { fileOf, requireSlot } from './slot-lookup.js'
import { unreadRow } from './unread-row.js'
import { upstreamRows } from './upstream-row.js'

export interface RecordServices {
  readonly config: ConfigService
  readonly slots: SlotService
  readonly dispatch: DispatchService
  readonly info: GatewayInfo
  readonly clock: Clock
  readonly upstreams: UpstreamService
}

const PROBES_AT_A_TIME = 8
const PROBE_MS = 8_000

/** Reads what records are made of. What cannot be found out in time is left out; nothing here fails a list. */
export class SlotRecords {
  readonly #services: RecordServices
  readonly #remote: RemoteSlots
  readonly #kept = new Map<string, KeptJson>()
  #list: { readonly texts: readonly string[], readonly bytes: Buffer } = { texts: [], bytes: Buffer.from('[]') }
  #problems: { readonly of: readonly Diagnostic[] | null, readonly byFile: ReadonlyMap<string, readonly Diagnostic[]> } =
    { of: null, byFile: new Map() }

  constructor (services: RecordServices) {
    this.#services = services
    this.#remote = new RemoteSlots(services)
  }

  /**
   * Slots in configuration order, those whose files cannot be read, then upstreams, as JSON: of what did not change since
   * the last time the text is kept, and so are the bytes of all.
   */
  async listJson (): Promise<Buffer> {
    return this.#joined(await this.#slotTexts(), this.#others())
  }

  /** As `listJson`, with the slots of each upstream that is a gateway after its row. */
  async listJsonWithRemote (): Promise<Buffer> {
    const [slots, remote] = await Promise.all([this.#slotTexts(), this.#remote.all()])
    const others = this.#others().flatMap((row): Array<SlotRow | RemoteSlotRow> => {
      const found = row.kind === 'remote' ? remote.get(row.name) : undefined
      if (found === undefined) return [row]
      return found.rows === null ? [{ ...row, remote_error: found.error } as SlotRow] : [row, ...found.rows]
    })
    return Buffer.from(`[${[...slots, ...others.map(row => JSON.stringify(row))].join(',')}]`)
  }

  async #slotTexts (): Promise<string[]> {
    const names = this.#services.slots.names()
    const deadline = startDeadline(this.#services.clock, PROBE_MS)
    const records = await mapBounded(names, PROBES_AT_A_TIME, name => this.#recordJson(name, deadline.within))
    deadline.end()
    if (this.#kept.size > names.length) for (const name of this.#kept.keys()) if (!names.includes(name)) this.#kept.delete(name)
    return records.filter(record => record !== null)
  }

  /** The bytes are kept as long as no text in them changes. */
  #joined (slots: readonly string[], others: readonly SlotRow[]): Buffer {
    const texts = [...slots, ...others.map(row => JSON.stringify(row))]
    const kept = this.#list.texts
    if (kept.length !== texts.length || !kept.every((text, i) => text === texts[i])) {
      this.#list = { texts, bytes: Buffer.from(`[${texts.join(',')}]`) }
    }
    return this.#list.bytes
  }

  /** A slot, one whose file cannot be read, else an upstream of that name. Throws `slot.not_found`. */
  async find (name: string): Promise<SlotRow> {
    if (this.#services.slots.names().includes(name)) return await this.detail(name)
    return this.#others().find(row => row.name === name) ?? await this.detail(name)
  }

  async detail (name: string): Promise<SlotRecord> {
    requireSlot(this.#services, name)
    const drift = this.#services.slots.status(name).configDrift
    const deadline = startDeadline(this.#services.clock, PROBE_MS)
    const facts = await this.#facts(name, deadline.within)
    deadline.end()
    const about = facts.provider?.about
    return { ...slotRecord(facts), ...(about === undefined ? {} : { about }), config_drift: drift }
  }

  #others (): SlotRow[] {
    const unread = this.#services.slots.unread().map(slot => unreadRow(slot, this.#diagnostics(slot.name)))
    return [...unread, ...this.#upstreams()]
  }

  #upstreams (): SlotRow[] {
    const { dispatch, slots } = this.#services
    return upstreamRows(dispatch.upstreams(), new Set(slots.names()))
  }

  /** Null for a slot that was deleted while the others were read. */
  async #recordJson (name: string, within: Within): Promise<string | null> {
    if (!this.#services.slots.names().includes(name)) return null
    const facts = await this.#facts(name, within)
    const kept = this.#kept.get(name) ?? new KeptJson()
    this.#kept.set(name, kept)
    return kept.of(partsOf(facts), () => slotRecord(facts))
  }

  async #facts (name: string, within: Within): Promise<SlotFacts> {
    const { slots } = this.#services
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
      runtime: slots.runtime(name),
      anchor: this.#anchor(slot.served_by),
      diagnostics: this.#diagnostics(name)
    }
    // what has to be waited for comes last: all of the above belongs to one moment
    const [memMb, imageState] = await Promise.all([
      slots.memoryMb(name),
      launch.outlook?.image == null ? null : this.#imageState(name, within)
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

  /** Problems of the slot's file. Sorted by file once for each configuration, not once for each slot. */
  #diagnostics (name: string): readonly Diagnostic[] {
    const { diagnostics } = this.#services.config.snapshot
    if (this.#problems.of !== diagnostics) {
      const byFile = new Map<string, Diagnostic[]>()
      for (const diagnostic of diagnostics) {
        const known = byFile.get(diagnostic.file)
        if (known === undefined) byFile.set(diagnostic.file, [diagnostic])
        else known.push(diagnostic)
      }
      this.#problems = { of: diagnostics, byFile }
    }
    return this.#problems.byFile.get(fileOf(name)) ?? []
  }

  #anchor (name: string | null): AnchorFacts | null {
    const { slots } = this.#services
    if (name === null || !slots.names().includes(name)) return null
    return { config: slots.config(name), state: slots.status(name).state, provider: slots.provider(name) }
  }

  async #imageState (name: string, within: Within): Promise<PullState | null> {
    return (await within(this.#services.slots.pullStatus(name)))?.state ?? null
  }
}

/** All that a record is made of, one level down: what lies deeper is made anew only when it changes. */
function partsOf (facts: SlotFacts): unknown[] {
  const { status: { ports, failure, replicas = [], ...status }, outlook, metrics, anchor, diagnostics, ...others } = facts
  const parts: unknown[] = [outlook === null, anchor === null, failure === null, Object.keys(ports).join(), ...diagnostics]
  // what is made anew at every look is compared by what is in it
  for (const made of [others, status, ports, failure, outlook, metrics, anchor, ...replicas]) {
    if (made !== null) for (const key in made) parts.push((made as Record<string, unknown>)[key])
  }
  return parts
}
