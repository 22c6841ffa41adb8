import {
  LABEL_INSTANCE, LABEL_SLOT, svcError, type Clock, type ContainerRuntime, type EngineExit,
  type EngineInspection, type EngineSpec, type Logger, type LogOptions, type RuntimeInfo
} from 'svc-gateway/plugin'
import type { ApiCall, ClusterApi } from './api/cluster-api.js'
import type { ClusterEvent, Pod } from './api/objects.js'
import { isAway, outlast } from './api/patience.js'
import { listAll } from './api/watched-list.js'
import { askOf, CapacityLine } from './pod/capacity-line.js'
import { InstancePods, podsOf } from './pod/instance-pods.js'
import { untilEnded } from './pod/pod-end.js'
import { podLogs } from './pod/pod-logs.js'
import { isPodId, newPodId, type KeptLaunch } from './pod/pod-names.js'
import { podManifest } from './pod/pod-spec.js'
import { inspection, isEnding, launchOf, runState } from './pod/pod-state.js'
import { untilFirst, untilRunning } from './pod/pod-start.js'
import type { Reach } from './reach/reach.js'
import { podSettings, slotOptionsSchema, type ClusterSettings } from './settings.js'

export interface KubernetesRuntimeDeps {
  readonly api: ClusterApi
  readonly info: RuntimeInfo
  readonly clock: Clock
  readonly log: Logger
  readonly reach: Reach
  /** Closed with the runtime; null where none are looked for. */
  readonly former: { close (): Promise<void> } | null
  readonly settings: () => ClusterSettings
  /** What `[slots]` says, in seconds. */
  readonly budgets: () => { readonly startS: number, readonly pullS: number, readonly stopS: number }
}

const MERGE = 'application/merge-patch+json'
/** Of one that is removed: it was asked to stop before, or nothing depends on how it ends. */
const REMOVE_GRACE_S = 1
const CLEANUP = 'the pod of a cancelled start'

/** Engines as bare pods of one namespace, one for each launch. */
export class KubernetesRuntime implements ContainerRuntime {
  readonly form = 'container'
  readonly info: RuntimeInfo
  readonly #deps: KubernetesRuntimeDeps
  readonly #pods = new Map<string, InstancePods>()
  /** Engines that are stopped at the moment. */
  readonly #ending = new Set<string>()
  readonly #line = new CapacityLine()
  readonly #closing = new AbortController()

  constructor (deps: KubernetesRuntimeDeps) {
    this.#deps = deps
    this.info = deps.info
  }

  /** A cluster does not tell what its nodes have: the pod pulls. */
  imagePresent (): Promise<boolean> { return Promise.resolve(true) }
  pull (): Promise<void> { return Promise.resolve() }

  startTimeoutMs (): number {
    const { startS, pullS } = this.#deps.budgets()
    return (this.#deps.settings().capacity_timeout_s + pullS + startS) * 1000
  }

  async assertPortFree (spec: EngineSpec): Promise<void> {
    await this.#deps.reach.assertFree(spec)
  }

  async create (spec: EngineSpec, signal: AbortSignal): Promise<string> {
    signal.throwIfAborted()
    const { api, budgets, settings } = this.#deps
    const id = newPodId(spec.labels[LABEL_SLOT] ?? '')
    const options = slotOptionsSchema.parse(spec.options ?? {})
    const body = podManifest({ id, spec, settings: podSettings(settings(), options), graceS: budgets().stopS })
    try {
      // not cut off: whether a pod was made must be known
      await api.json<Pod>({ method: 'POST', path: api.path('pods'), body })
    } catch (error) {
      // the answer may be what was lost
      if (isAway(error)) await this.#forget(id)
      signal.throwIfAborted()
      throw error
    }
    if (signal.aborted) {
      await this.remove(id)
      throw signal.reason
    }
    return id
  }

  async start (id: string, signal: AbortSignal, told: (line: string) => void = () => {}): Promise<void> {
    const { api, clock, reach, settings } = this.#deps
    const found = await this.#find(id)
    if (found === null) throw notFound(id)
    signal.throwIfAborted()
    const { pod, kept } = found
    if (runState(pod) === 'running') return
    const pods = this.#podsOf(kept)
    await reach.open(pod, kept)
    pods.starting(kept)
    const either = AbortSignal.any([signal, this.#closing.signal])
    const capacityMs = settings().capacity_timeout_s * 1000
    const since = clock.monotonic()
    let [said, isPlaced] = ['', false]
    const place = this.#line.join(askOf(pod), line => told(said = line))
    try {
      if (isGated(pod)) await untilFirst({ place, clock, capacityMs, said: () => said }, either)
      await this.#openGate(pod)
      await untilRunning({
        pods,
        clock,
        id,
        told: line => {
          if (isPlaced) told(line)
          else place.says(line)
        },
        placed: () => {
          isPlaced = true
          place.leave()
        },
        look: async () => (await this.#find(id))?.pod ?? null,
        events: async () => (await listAll<ClusterEvent>(api, api.path('events'), { fieldSelector: `involvedObject.name=${id}` })).items,
        since,
        capacityMs
      }, either)
    } catch (error) {
      pods.failed(id)
      await reach.drop(id)
      throw error
    } finally {
      place.leave()
    }
  }

  /** Outlasts an API server that is away for up to a minute, as `remove` does. */
  async stop (id: string, timeoutS: number): Promise<void> {
    this.#ending.add(id)
    try {
      await this.#stop(id, timeoutS)
    } finally {
      this.#ending.delete(id)
    }
  }

  async #stop (id: string, timeoutS: number): Promise<void> {
    const { api, reach } = this.#deps
    const found = await this.#outlast(() => this.#find(id))
    if (found === null) return
    const { pod } = found
    if (runState(pod) === 'created') {
      // without a node nothing would end it, and it has nothing to say
      if (isGated(pod)) return
      return await this.remove(id)
    }
    if (runState(pod) === 'running') {
      const isAsked = await this.#asked({
        method: 'PATCH', path: api.path('pods', id), contentType: MERGE, body: { spec: { activeDeadlineSeconds: 1 } }
      })
      if (isAsked !== null) await this.#untilEnded(found, timeoutS)
    }
    await reach.drop(id)
  }

  async remove (id: string): Promise<void> {
    const { api, clock, log, reach } = this.#deps
    const found = await this.#outlast(() => this.#find(id))
    if (found === null) return await reach.drop(id)
    const pods = this.#podsOf(found.kept)
    const path = api.path('pods', id)
    await this.#asked({ method: 'DELETE', path, query: { gracePeriodSeconds: String(REMOVE_GRACE_S) } })
    await untilEnded({
      pods,
      clock,
      id,
      look: () => this.#asked<Pod>({ path }),
      graceMs: 0,
      lost: async () => {
        log.warn({ engine: id }, 'the node of a pod no longer answers: the pod is force-deleted')
        await this.#asked({ method: 'DELETE', path, query: { gracePeriodSeconds: '0' } })
        return false
      }
    }, this.#closing.signal)
    pods.gone(id)
    await reach.drop(id)
  }

  async inspect (id: string): Promise<EngineInspection | null> {
    const found = await this.#find(id)
    return found === null ? null : await this.#inspected(found.pod, found.kept)
  }

  async list (labels: Readonly<Record<string, string>>): Promise<readonly EngineInspection[]> {
    const { api } = this.#deps
    const { items } = await listAll<Pod>(api, api.path('pods'), podsOf(labels[LABEL_INSTANCE] ?? null))
    const wanted = Object.entries(labels)
    const own = items.flatMap(pod => {
      const kept = launchOf(pod)
      return kept !== null && wanted.every(([key, value]) => kept.labels[key] === value) ? [{ pod, kept }] : []
    })
    return await Promise.all(own.map(async ({ pod, kept }) => {
      const found = await this.#inspected(pod, kept)
      // an earlier gateway has begun its end: who took it over would have an engine for a second
      return isEnding(pod) && !this.#ending.has(kept.id) ? { ...found, state: 'exited' as const, address: null } : found
    }))
  }

  async* logs (id: string, options: LogOptions): AsyncIterable<string> {
    if (!isPodId(id)) throw notFound(id)
    const { api, clock } = this.#deps
    const runs = async (name: string): Promise<boolean | null> => {
      const found = await this.#find(name)
      return found === null ? null : runState(found.pod) !== 'exited'
    }
    yield* podLogs(id, options, { api, clock, runs, closed: this.#closing.signal })
  }

  onExit (instance: string, listener: (exit: EngineExit) => void): () => void {
    return this.#instance(instance).onExit(listener)
  }

  async close (): Promise<void> {
    this.#closing.abort(new Error('the runtime is closed'))
    for (const pods of this.#pods.values()) pods.close()
    await this.#deps.former?.close()
    await this.#deps.reach.close()
    await this.#deps.api.close()
  }

  /** The pod of an engine of a gateway; null for what is none, whatever it is called. */
  async #find (id: string): Promise<{ readonly pod: Pod, readonly kept: KeptLaunch } | null> {
    if (!isPodId(id)) return null
    const { api } = this.#deps
    const pod = await api.find<Pod>({ path: api.path('pods', id) })
    const kept = pod === null ? null : launchOf(pod)
    return pod === null || kept === null ? null : { pod, kept }
  }

  /** As `ClusterApi.find`, of an end. */
  #asked<T> (call: ApiCall): Promise<T | null> {
    return this.#outlast(() => this.#deps.api.find<T>(call))
  }

  #outlast<T> (ask: () => Promise<T>): Promise<T> {
    return outlast(ask, { clock: this.#deps.clock, closing: this.#closing.signal })
  }

  async #inspected (pod: Pod, kept: KeptLaunch): Promise<EngineInspection> {
    this.#podsOf(kept).seen(pod)
    const address = runState(pod) === 'running' ? await this.#deps.reach.address(pod, kept) : null
    return inspection(pod, kept, address)
  }

  #podsOf ({ labels }: KeptLaunch): InstancePods {
    return this.#instance(labels[LABEL_INSTANCE] ?? '')
  }

  #instance (instance: string): InstancePods {
    const known = this.#pods.get(instance)
    if (known !== undefined) return known
    const { api, clock, log } = this.#deps
    const pods = new InstancePods(api, clock, log, instance)
    if (this.#closing.signal.aborted) pods.close()
    this.#pods.set(instance, pods)
    return pods
  }

  async #openGate (pod: Pod): Promise<void> {
    if (!isGated(pod)) return
    const { api } = this.#deps
    const opened = await api.find<Pod>({
      method: 'PATCH', path: api.path('pods', pod.metadata.name), contentType: MERGE, body: { spec: { schedulingGates: [] } }
    })
    if (opened === null) throw notFound(pod.metadata.name)
  }

  /** Its node kills it when its grace is over. A node that is gone does not: then the time that the caller gives counts. */
  async #untilEnded ({ pod: first, kept }: { readonly pod: Pod, readonly kept: KeptLaunch }, timeoutS: number): Promise<void> {
    const { id } = kept
    const pods = this.#podsOf(kept)
    await untilEnded({
      pods,
      clock: this.#deps.clock,
      id,
      look: async () => {
        const pod = (await this.#outlast(() => this.#find(id)))?.pod ?? null
        if (pod === null || runState(pod) !== 'exited') return pod
        pods.seen(pod)
        return null
      },
      graceMs: Math.max(timeoutS, first.spec.terminationGracePeriodSeconds ?? 0) * 1000,
      lost: async () => {
        await this.remove(id)
        return true
      }
    }, this.#closing.signal)
  }

  async #forget (id: string): Promise<void> {
    const { api, log } = this.#deps
    try {
      await api.find({ method: 'DELETE', path: api.path('pods', id), query: { gracePeriodSeconds: String(REMOVE_GRACE_S) } })
    } catch (error) {
      // its labels are known: the next launch of the slot finds it
      log.warn({ err: error, engine: id }, `${CLEANUP} may be left`)
    }
  }
}

function isGated ({ spec }: Pod): boolean {
  return (spec.schedulingGates ?? []).length > 0
}

function notFound (id: string): Error {
  return svcError('runtime.not_found', `there is no engine ${id.slice(0, 80)}`)
}
