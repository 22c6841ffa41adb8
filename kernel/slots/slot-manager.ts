import type { Dispatcher } from 'undici'
import {
  svcError, type ChangeOptions, type Convergence, type Device, type EngineAddress, type EngineClient,
  type EngineProvider, type ImagePullStatus, type LaunchDifference, type LaunchTrouble, type LogQuery, type NamedProfile,
  type NamedSlotConfig,
  type ProfileOutlook, type RequestPriority, type ResolvedArgv, type SlotDraft, type SlotLease, type SlotMetrics,
  type SlotGate, type SlotOutlook, type SlotProblem, type SlotService, type SlotStatus, type SlotVoices, type SlotWish,
  type UnreadSlot
} from '../contract/index.js'
import type { EngineForm } from '../contract/provider/engine-runtime.js'
import type { EngineMemory } from '../runtime/engine-memory.js'
import type { ResolvedImage } from '../runtime/image/image-manifest.js'
import { createEngineClient } from './life/engine/engine-client.js'
import { unreadNames } from './life/held-engines.js'
import type { ImagePulls } from './life/image-pulls.js'
import type { ShadowSlots } from './shadow-slots.js'
import type { FleetDeps } from './life/fleet-deps.js'
import type { SlotFleet } from './life/slot-fleet.js'
import { isLive } from './schedule/leases.js'
import { isFurtherReplica } from './schedule/replica-names.js'
import { slotNotFound } from './schedule/slot-errors.js'
import { SlotLending } from './slot-lending.js'
import { SlotVerbs } from './slot-verbs.js'
import { slotLogs } from './life/slot-logs.js'
import { mergedLogs } from './replicas/replica-logs.js'
import type { PrefixSource } from './replicas/prefix-places.js'
import type { ReplicaSets } from './replicas/replica-sets.js'
import { projectorOf } from './plan/launch/missing-files.js'
import type { SlotWriter } from './write/slot-writer.js'
import { Throughput } from './life/engine/throughput.js'
import { readVoices } from './life/engine/voices.js'

export interface SlotManagerDeps extends Pick<FleetDeps, 'config' | 'plans' | 'runtime' | 'clock' | 'log' | 'instance'> {
  readonly fleet: SlotFleet
  readonly shadows: ShadowSlots
  readonly sets: ReplicaSets
  readonly gate: SlotGate
  readonly writer: SlotWriter
  readonly pulls: ImagePulls
  readonly memory: Pick<EngineMemory, 'read'>
  readonly connections: { readonly to: (origin: string) => Dispatcher, readonly originOf: (address: EngineAddress) => string }
}

const never = new AbortController().signal
const MIB = 1024 * 1024

/** The slots as the rest of the gateway sees them (contract `SlotService`). */
export class SlotManager implements SlotService {
  readonly #deps: SlotManagerDeps
  readonly #lending: SlotLending
  readonly #verbs: SlotVerbs
  readonly #throughput = new Map<string, Throughput>()
  readonly #selfStarts = new Map<string, AbortController>()

  constructor (deps: SlotManagerDeps) {
    this.#deps = deps
    this.#lending = new SlotLending(deps)
    this.#verbs = new SlotVerbs({ ...deps, lending: this.#lending, slots: this })
  }

  names (): readonly string[] { return this.#deps.shadows.names() }

  unread (): readonly UnreadSlot[] {
    const { config, fleet } = this.#deps
    return unreadNames(config.snapshot, fleet.held.names()).map(name => ({ name, engine: fleet.held.find(name) }))
  }

  config (name: string): NamedSlotConfig {
    if (isFurtherReplica(name)) throw slotNotFound(name)
    return this.#deps.shadows.find(name)?.slot ?? this.#deps.config.snapshot.slots.get(name) ?? this.#deps.plans.slot(name)
  }

  provider (name: string): EngineProvider | null { return this.#deps.plans.providerOf(this.config(name)) }
  runtime (name: string): EngineForm {
    const { plans, shadows } = this.#deps
    return plans.form(plans.slot(shadows.find(name)?.anchor ?? name))
  }

  device (name: string): Device { return this.#deps.plans.device(this.config(name)) }

  /** Other names that requests may use for slots, with the slots they mean. */
  aliases (): ReadonlyArray<readonly [alias: string, slot: string]> { return this.#deps.shadows.aliases() }

  status (name: string): SlotStatus {
    const set = this.#deps.sets.find(name)
    if (set !== null) return set.status()
    const shadow = this.#deps.shadows.find(name)
    return shadow === null ? this.#deps.fleet.status(name) : this.#deps.shadows.status(shadow)
  }

  isLive (name: string): boolean {
    const { fleet, sets, shadows } = this.#deps
    this.config(name)
    const members = sets.find(name)?.memberNames() ?? [shadows.find(name)?.anchor ?? name]
    return members.some(member => isLive(fleet.core(member)))
  }

  differences (name: string): readonly LaunchDifference[] {
    return this.#deps.shadows.find(name) === null ? this.#deps.fleet.differences(name) : []
  }

  resolved (name: string): ResolvedArgv {
    const shadow = this.#deps.shadows.find(name)
    if (shadow !== null) return { argv: null, provenance: [], removed: 0 }
    return this.#deps.plans.resolved(name, this.#deps.fleet.ports.expectedAll(name))
  }

  outlook (name: string): SlotOutlook {
    const { plans, shadows } = this.#deps
    const shadow = shadows.find(name)
    if (shadow !== null) return { ...this.outlook(shadow.anchor), contextSize: null, vision: false }
    const { slot, provider, profile, model } = plans.effective(name)
    return {
      profile: profile?.name ?? null,
      image: plans.image(name)?.ref ?? null,
      contextSize: plans.contextSize({ slot, provider, model }),
      vision: slot.type === 'llm' && (provider.models === undefined ? projectorOf(slot, model) !== null : slot.vision)
    }
  }

  async troubles (name: string): Promise<readonly LaunchTrouble[]> {
    const { config, plans } = this.#deps
    return await plans.over(config.snapshot).troubles(this.config(name).served_by ?? name)
  }

  misfit (wish: SlotWish): string | null {
    return this.#deps.plans.misfit(wish)
  }

  profileOutlook (profile: NamedProfile): ProfileOutlook {
    return this.#deps.plans.profileOutlook(profile)
  }

  client (name: string): EngineClient | null {
    const { address } = this.status(name)
    return address === null ? null : this.clientOf(address, this.provider(name))
  }

  clientOf (address: EngineAddress, provider: EngineProvider | null = null): EngineClient {
    const { to, originOf } = this.#deps.connections
    return createEngineClient(address, to, originOf, provider?.keepsConnections !== false)
  }

  async* watch (name: string, signal: AbortSignal): AsyncIterable<SlotStatus> {
    const { fleet, sets, shadows } = this.#deps
    const set = sets.find(name)
    if (set !== null) return yield* set.feed.read(() => set.status(), signal)
    const shadow = shadows.find(name)
    yield* shadow === null ? fleet.feed(name).read(() => this.status(name), signal) : shadows.watch(shadow, signal)
  }

  ensureReady (name: string, signal: AbortSignal): Promise<void> {
    return this.#lending.ensureReady(name, signal)
  }

  /** @param source what is asked, of which a slot with several replicas remembers where its beginning is cached */
  tryAcquire (name: string, light = false, source: PrefixSource | null = null): SlotLease | null {
    return this.#lending.tryAcquire(name, light, source)
  }

  acquire (
    name: string, signal: AbortSignal, light = false, priority: RequestPriority = 'normal', source: PrefixSource | null = null
  ): Promise<SlotLease> {
    return this.#lending.acquire(name, signal, light, priority, source)
  }

  load (name: string, options?: { model?: string, signal?: AbortSignal }): Promise<void> {
    return this.#verbs.load(name, options)
  }

  unload (name: string, options?: { force?: boolean }): Promise<void> { return this.#verbs.unload(name, options) }
  restart (name: string, options?: { signal?: AbortSignal }): Promise<void> { return this.#verbs.restart(name, options) }

  swap (name: string, model: string, options?: { signal?: AbortSignal }): Promise<void> {
    return this.#verbs.swap(name, model, options)
  }

  converge (name: string, options?: { signal?: AbortSignal }): Promise<Convergence> { return this.#verbs.converge(name, options) }

  create (name: string, config: Readonly<Record<string, unknown>>): Promise<NamedSlotConfig> {
    return this.#deps.writer.create(name, config)
  }

  update (name: string, patch: Readonly<Record<string, unknown>>): Promise<NamedSlotConfig> {
    return this.#verbs.update(name, patch)
  }

  async delete (name: string, options?: { force?: boolean }): Promise<void> {
    await this.#verbs.delete(name, options)
    this.#throughput.delete(name)
  }

  check (slots: readonly NamedSlotConfig[], profiles?: ReadonlyMap<string, NamedProfile>): readonly SlotProblem[] {
    return this.#deps.writer.check(slots, profiles)
  }

  change<T> (work: (draft: SlotDraft) => Promise<T>, options?: ChangeOptions): Promise<T> {
    return this.#deps.writer.change(work, options)
  }

  skipAutostart (names: readonly string[]): void {
    for (const name of names) this.#selfStart(name).abort(svcError('slot.stopped', `slot '${name}' is not started automatically this time: an applied stack or a plugin decides which slots run`))
  }

  /** Ends the start of a slot by itself, also one that waits for its GPU. Aborted already for one that does not start. */
  selfStart (name: string): AbortSignal { return this.#selfStart(name).signal }

  #selfStart (name: string): AbortController {
    let ending = this.#selfStarts.get(name)
    if (ending === undefined) this.#selfStarts.set(name, ending = new AbortController())
    return ending
  }

  logs (name: string, query: LogQuery, signal: AbortSignal): AsyncGenerator<string> {
    const set = this.#deps.sets.find(name)
    if (set !== null) return mergedLogs(set.memberNames().map(member => slotLogs(this.#deps, member, query, signal)))
    const runs = this.#deps.shadows.find(name)?.anchor ?? name
    return slotLogs(this.#deps, runs, query, signal)
  }

  keep (name: string, ms: number): void {
    const { fleet, sets, shadows } = this.#deps
    for (const member of sets.find(name)?.memberNames() ?? [shadows.find(name)?.anchor ?? name]) fleet.keep(member, ms)
  }

  idleTimeoutMs (name: string): number | null {
    return this.#deps.fleet.idleTimeoutMs(this.#deps.shadows.find(name)?.anchor ?? name)
  }

  metrics (name: string): SlotMetrics {
    this.config(name)
    return this.throughput(name).read()
  }

  async memoryMb (name: string): Promise<number | null> {
    const { engineId, replicas } = this.status(name)
    const ids = (replicas ?? [{ engineId }]).flatMap(each => each.engineId ?? [])
    const sizes = await Promise.all(ids.map(id => this.#deps.memory.read(id)))
    return sizes.includes(null) ? null : Math.round(sizes.reduce<number>((sum, bytes) => sum + bytes!, 0) / MIB)
  }

  async voices (name: string, signal: AbortSignal): Promise<SlotVoices> {
    return await readVoices(name, this.provider(name), this.client(name), this.#deps.clock, signal)
  }

  /** The counters of a slot, for the dispatcher to feed. */
  throughput (name: string): Throughput {
    let throughput = this.#throughput.get(name)
    if (throughput === undefined) this.#throughput.set(name, throughput = new Throughput(this.#deps.clock))
    return throughput
  }

  /** The counters of the slots that have counted anything, by name. */
  throughputs (): ReadonlyMap<string, Throughput> {
    return this.#throughput
  }

  async pullImage (name: string): Promise<{ readonly resumed: boolean, readonly status: ImagePullStatus }> {
    return this.#deps.pulls.start(name, this.#image(name))
  }

  pullStatus (name: string): Promise<ImagePullStatus> {
    return this.#deps.pulls.status(name, this.#image(name), never)
  }

  watchPull (name: string, signal: AbortSignal): AsyncIterable<ImagePullStatus> {
    return this.#deps.pulls.watch(name, this.#image(name), signal)
  }

  #image (name: string): ResolvedImage {
    const runs = this.#deps.shadows.find(name)?.anchor ?? name
    const { plans } = this.#deps
    const image = plans.image(runs)
    if (image !== null) return image
    throw svcError('slot.config_error', `slot '${name}' does not use a container image${plans.form(plans.slot(runs)) === 'process' ? ': its engine runs as a process' : ''}`,
      { details: { slot: name } })
  }
}
