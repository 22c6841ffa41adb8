import { abortable, type Clock, type EngineExit, type Logger } from 'svc-gateway/plugin'
import type { ClusterApi } from '../api/cluster-api.js'
import type { Pod } from '../api/objects.js'
import { watchList } from '../api/watched-list.js'
import { INSTANCE_LABEL, instanceValue, MANAGED_BY, MANAGED_LABEL } from './pod-names.js'
import { engineStatus, launchOf, runState } from './pod-state.js'

/** Ends that are remembered against pods that are shown once more. */
const REMEMBERED = 4096

/** Pods of one home: the labels that find them, as a query. */
export function podsOf (instance: string | null): Readonly<Record<string, string>> {
  const own = instance === null ? '' : `,${INSTANCE_LABEL}=${instanceValue(instance)}`
  return { labelSelector: `${MANAGED_LABEL}=${MANAGED_BY}${own}` }
}

/** Follows the pods of one home: tells each end once, and wakes those that wait for one of them to change. */
export class InstancePods {
  readonly #listeners = new Set<(exit: EngineExit) => void>()
  readonly #log: Logger
  /** Seen running, with what is told of their end. */
  readonly #running = new Map<string, EngineExit>()
  readonly #told = new Set<string>()
  readonly #waiting = new Map<string, Set<(pod: Pod | null) => void>>()
  readonly #closing = new AbortController()

  constructor (api: ClusterApi, clock: Clock, log: Logger, instance: string) {
    this.#log = log
    let before: ReadonlySet<string> = new Set(this.#running.keys())
    void watchList<Pod>({
      api,
      clock,
      log,
      path: api.path('pods'),
      query: podsOf(instance),
      signal: this.#closing.signal,
      listing: () => { before = new Set(this.#running.keys()) },
      listed: pods => {
        for (const pod of pods) this.seen(pod)
        const present = new Set(pods.map(({ metadata }) => metadata.name))
        // one that started meanwhile is not in the list yet
        for (const id of before) if (!present.has(id)) this.gone(id)
        for (const id of [...this.#waiting.keys()]) if (!present.has(id)) this.#wake(id, null)
      },
      changed: pod => this.seen(pod),
      gone: pod => {
        this.seen(pod)
        this.gone(pod.metadata.name)
        this.#wake(pod.metadata.name, null)
      }
    })
  }

  /** A pod as it was just shown, by whatever showed it. */
  seen (pod: Pod): void {
    const kept = launchOf(pod)
    if (kept === null) return
    const { id, labels } = kept
    const state = runState(pod)
    if (state === 'running' && !this.#told.has(id)) this.#running.set(id, { id, labels, exitCode: null })
    if (state === 'exited' && this.#running.has(id)) {
      const why = pod.status?.conditions?.find(({ type }) => type === 'DisruptionTarget')
      if (why !== undefined) this.#log.warn({ engine: id, reason: why.reason }, `the cluster ended an engine: ${(why.message ?? why.reason ?? '').slice(0, 300)}`)
      this.#tell({ id, labels, exitCode: engineStatus(pod)?.state?.terminated?.exitCode ?? null })
    }
    this.#wake(id, pod)
  }

  /** Its end will be news, however soon it comes. */
  starting ({ id, labels }: Pick<EngineExit, 'id' | 'labels'>): void {
    if (!this.#told.has(id)) this.#running.set(id, { id, labels, exitCode: null })
  }

  /** It did not come to run: its end is no news. */
  failed (id: string): void {
    this.#running.delete(id)
  }

  /** The pod is not there any more. */
  gone (id: string): void {
    const exit = this.#running.get(id)
    if (exit !== undefined) this.#tell(exit)
  }

  /** The pod when it was shown next; null once it is gone. Ask for the pod afterwards: it may have changed before. */
  next (id: string): { readonly shown: (signal: AbortSignal) => Promise<Pod | null>, readonly drop: () => void } {
    let wake: (pod: Pod | null) => void = () => {}
    const shown = new Promise<Pod | null>(resolve => { wake = resolve })
    const waiters = this.#waiting.get(id) ?? new Set()
    this.#waiting.set(id, waiters.add(wake))
    return {
      shown: signal => abortable(shown, AbortSignal.any([signal, this.#closing.signal])),
      drop: () => {
        waiters.delete(wake)
        if (waiters.size === 0 && this.#waiting.get(id) === waiters) this.#waiting.delete(id)
      }
    }
  }

  onExit (listener: (exit: EngineExit) => void): () => void {
    const entry = (exit: EngineExit): void => listener(exit)
    this.#listeners.add(entry)
    return () => { this.#listeners.delete(entry) }
  }

  close (): void {
    this.#closing.abort(new Error('the runtime is closed'))
    this.#listeners.clear()
  }

  #tell (exit: EngineExit): void {
    this.#running.delete(exit.id)
    this.#told.add(exit.id)
    if (this.#told.size > REMEMBERED) this.#told.delete(this.#told.values().next().value!)
    for (const listener of this.#listeners) {
      try {
        listener(exit)
      } catch (error) {
        this.#log.error({ err: error, engine: exit.id }, 'a listener for ends of engines failed')
      }
    }
  }

  #wake (id: string, pod: Pod | null): void {
    const waiters = this.#waiting.get(id)
    if (waiters === undefined) return
    this.#waiting.delete(id)
    for (const wake of waiters) wake(pod)
  }
}
