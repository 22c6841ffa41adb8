import type { NamedSlotConfig } from '../../contract/index.js'
import { mostReplicas } from '../schedule/replica-names.js'

/**
 * `up` takes requests; `retiring` is up and gets none any more, until its last one has ended; `coming` is being started;
 * `leaving` is being stopped; `failed` did not come up, or broke.
 */
export type ReplicaStage = 'up' | 'retiring' | 'coming' | 'leaving' | 'failed' | 'down'

/** Times are on the monotonic clock, in milliseconds. */
export interface Replica {
  /** From 1. */
  readonly index: number
  readonly stage: ReplicaStage
  readonly inFlight: number
  /** Requests it works on at once; null takes as many as it is given. Of one that is not up: null. */
  readonly workers: number | null
  readonly usedAt: number
  /** Of one that failed: when it may be tried again. */
  readonly retryAt: number
}

export interface ReplicaLoad {
  /** Requests in line. */
  readonly waiting: number
  /** Those of them that another replica may be started for: the low class is not, before it has waited for long. */
  readonly pressing: number
  /** Since when one of those has waited; of one that is about to count, when it does. Null where none is about to. */
  readonly oldestSince: number | null
  /** The most requests at once, at work or in line, within the last `downAfterMs`. */
  readonly peak: number
  /** When that may be less; null if it may be at any time. */
  readonly peakFallsAt: number | null
}

export interface ReplicaTerms {
  /** Kept up without requests. */
  readonly min: number
  /** Started when the slot is loaded. */
  readonly normal: number
  readonly max: number
  /** Requests a replica works on at once, as far as none that is up says otherwise. */
  readonly workers: number
  /** How long a request has waited before another replica is started for it. */
  readonly upAfterMs: number
  /** How long one beyond `normal` has not been needed before it goes. */
  readonly downAfterMs: number
  /** How long any has had nothing to do before it goes; null is never. */
  readonly idleMs: number | null
  /** False for a slot that nothing has asked for, or that was unloaded. */
  readonly awake: boolean
}

/** @param idleMs how long any has had nothing to do before it goes; null is never */
export function termsOf (slot: NamedSlotConfig, idleMs: number | null, isAwake: boolean): ReplicaTerms {
  return {
    min: slot.min_replicas,
    normal: slot.replicas,
    max: mostReplicas(slot),
    workers: slot.workers,
    upAfterMs: slot.scale_up_wait_s * 1000,
    downAfterMs: slot.scale_down_wait_s * 1000,
    idleMs,
    awake: isAwake && slot.enabled
  }
}

export type ReplicaAction =
  | { readonly type: 'start', readonly index: number }
  /** It gets no further request. */
  | { readonly type: 'retire', readonly index: number }
  /** It is needed after all. */
  | { readonly type: 'keep', readonly index: number }
  /** It has nothing to do and goes. */
  | { readonly type: 'stop', readonly index: number, readonly why: 'spare' | 'idle' }

export interface ReplicaPlan {
  readonly actions: readonly ReplicaAction[]
  /** When to look again, although nothing happens until then; null: only when something does. */
  readonly lookAt: number | null
}

/**
 * How many replicas a slot should have, and which of them come and go. Pure: no clock, no log, no effect.
 *
 * - A request that finds none up or coming starts `normal` of them, also such as failed a moment ago: it hears why.
 * - Requests that have waited for `upAfterMs` start as many as the line keeps at work, less those that are coming. Those of
 *   the low class take what is free, until they have waited for as long as makes them equal to the others. While one that
 *   failed waits for its next try, none is started for the line: it may be the machine that has no room.
 * - Beyond `normal`, those go that the most requests of the last `downAfterMs` did not need; one that works ends what it has.
 * - Any goes that had nothing to do for `idleMs`, down to `min`, also while another one is coming. A start that is no longer
 *   needed is not cut off: what loads may be what an operator asked for.
 */
export function planReplicas (replicas: readonly Replica[], load: ReplicaLoad, terms: ReplicaTerms, now: number): ReplicaPlan {
  if (!terms.awake) return { actions: [], lookAt: null }
  const actions: ReplicaAction[] = []
  const times: number[] = []
  const of = (stage: ReplicaStage): Replica[] => replicas.filter(replica => replica.stage === stage)
  const up = of('up')
  const active = up.length + of('coming').length
  const missing = wanted(replicas, load, terms, now, times) - active
  if (missing > 0) {
    const kept = byNumber(of('retiring')).slice(0, missing)
    const isCold = active === 0 && load.waiting > 0
    const ready = startable(replicas, isCold, now).slice(0, missing - kept.length)
    for (const { index } of kept) actions.push({ type: 'keep', index })
    for (const { index } of ready) actions.push({ type: 'start', index })
  } else {
    actions.push(...leaving(replicas, load, terms, now, times))
  }
  if (missing > 0 || load.waiting > 0) times.push(...of('failed').map(({ retryAt }) => retryAt))
  const next = Math.min(...times.filter(time => time > now))
  return { actions, lookAt: next === Infinity ? null : next }
}

function wanted (
  replicas: readonly Replica[], { waiting, pressing, oldestSince }: ReplicaLoad, terms: ReplicaTerms, now: number, times: number[]
): number {
  const { min, normal, max, workers, upAfterMs } = terms
  const up = replicas.filter(({ stage }) => stage === 'up')
  const coming = replicas.filter(({ stage }) => stage === 'coming').length
  const active = up.length + coming
  if (waiting > 0 && active === 0) return Math.max(normal, min)
  if (oldestSince === null || active >= max || replicas.some(({ stage, retryAt }) => stage === 'failed' && retryAt > now)) return Math.max(active, min)
  if (now - oldestSince < upAfterMs) {
    times.push(oldestSince + upAfterMs)
    return Math.max(active, min)
  }
  const further = Math.ceil(pressing / perReplica(up, workers)) - coming
  return Math.max(Math.min(active + Math.max(0, further), max), min)
}

/** Those that never failed first. @param isCold nothing else could serve: one that waits for its next try is asked, too */
function startable (replicas: readonly Replica[], isCold: boolean, now: number): Replica[] {
  const down = byNumber(replicas.filter(({ stage }) => stage === 'down'))
  const failed = replicas.filter(({ stage, retryAt }) => stage === 'failed' && (isCold || retryAt <= now))
  return [...down, ...failed.toSorted((a, b) => a.retryAt - b.retryAt || a.index - b.index)]
}

function leaving (
  replicas: readonly Replica[], load: ReplicaLoad, terms: ReplicaTerms, now: number, times: number[]
): ReplicaAction[] {
  const { min, normal, workers, idleMs } = terms
  const up = replicas.filter(({ stage }) => stage === 'up')
  const actions: ReplicaAction[] = replicas.filter(({ stage, inFlight }) => stage === 'retiring' && inFlight === 0)
    .map(({ index }) => ({ type: 'stop', index, why: 'spare' }))
  // one that is coming keeps none of the others: it may take long, and may fail
  if (load.waiting > 0) return actions
  const needed = Math.max(normal, min, Math.ceil(load.peak / perReplica(up, workers)))
  // what works goes last, so that few have to be waited for
  const order = up.toSorted((a, b) => a.inFlight - b.inFlight || b.index - a.index)
  const spare = order.slice(0, Math.max(0, up.length - needed))
  for (const { index, inFlight } of spare) actions.push(inFlight === 0 ? { type: 'stop', index, why: 'spare' } : { type: 'retire', index })
  if (up.length - spare.length > Math.max(normal, min) && load.peakFallsAt !== null) times.push(load.peakFallsAt)
  if (idleMs === null) return actions
  const mayGo = Math.max(0, up.length - spare.length - min)
  const idle = order.slice(spare.length).filter(({ inFlight }) => inFlight === 0).slice(0, mayGo)
  for (const { index, usedAt } of idle) {
    if (now - usedAt >= idleMs) actions.push({ type: 'stop', index, why: 'idle' })
    else times.push(usedAt + idleMs)
  }
  return actions
}

/** Infinity where the engines take as many requests as they are given: no line, and no more than `normal`. */
function perReplica (up: readonly Replica[], configured: number): number {
  if (up.length === 0) return configured
  return Math.max(...up.map(({ workers }) => workers ?? Infinity))
}

function byNumber (replicas: readonly Replica[]): Replica[] {
  return replicas.toSorted((a, b) => a.index - b.index)
}
