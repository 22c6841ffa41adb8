import { DemandPeak } from '../../../../kernel/slots/replicas/demand-peak.js'
import { chooseReplica } from '../../../../kernel/slots/replicas/choose-replica.js'
import { planReplicas, type Replica, type ReplicaTerms } from '../../../../kernel/slots/replicas/replica-plan.js'

/** Milliseconds since the start of the load. */
export interface Arrival { readonly at: number, readonly workMs: number }

export interface ReplayOptions {
  readonly terms: ReplicaTerms
  /** From the start of an engine until it is ready. */
  readonly startMs: number
  /** Whether the n-th start fails. */
  readonly failsAt?: (start: number) => boolean
}

export interface Replayed {
  /** Of each request, in the order of their arrivals. */
  readonly waitsMs: readonly number[]
  /** How many were up, from each moment on at which that changed. */
  readonly ups: ReadonlyArray<{ readonly at: number, readonly up: number }>
  readonly starts: number
  readonly stops: number
  /** Replicas times milliseconds that they were up or coming; of those that are never stopped, until the last request. */
  readonly engineMs: number
}

type Engine = { -readonly [K in keyof Replica]: Replica[K] } & { startedAt: number }

/** Plays a load through the scheduler in simulated time, with engines that only take time. */
export function replay (arrivals: readonly Arrival[], { terms, startMs, failsAt = () => false }: ReplayOptions): Replayed {
  const engines: Engine[] = Array.from({ length: terms.max }, (_, i) => (
    { index: i + 1, workers: terms.workers, stage: 'down', inFlight: 0, usedAt: 0, retryAt: 0, startedAt: 0 }))
  const peak = new DemandPeak()
  const events = new Events()
  const line: number[] = []
  const waitsMs: number[] = arrivals.map(() => NaN)
  const ups: Array<{ at: number, up: number }> = []
  let [starts, stops, engineMs, awake, before] = [0, 0, 0, terms.min > 0, 0]
  const demand = (): number => line.length + engines.reduce((sum, { inFlight }) => sum + inFlight, 0)
  const stop = (engine: Engine, now: number): void => {
    Object.assign(engine, { stage: 'down', usedAt: now })
    engineMs += now - engine.startedAt
    stops++
  }
  const serve = (now: number): void => {
    while (line.length > 0) {
      const free = engines.filter(({ stage, inFlight }) => stage === 'up' && inFlight < terms.workers)
      const chosen = chooseReplica(free, null)
      if (chosen === null) return
      const request = line.shift()!
      const engine = engines[chosen.index - 1]!
      engine.inFlight++
      engine.usedAt = now
      waitsMs[request] = now - arrivals[request]!.at
      events.add(now + arrivals[request]!.workMs, at => {
        engine.inFlight--
        engine.usedAt = at
      })
    }
  }
  const start = (engine: Engine, now: number): void => {
    Object.assign(engine, { stage: 'coming', startedAt: now })
    const fails = failsAt(++starts)
    events.add(now + startMs, at => {
      Object.assign(engine, { stage: fails ? 'failed' : 'up', usedAt: at, retryAt: at + 5_000 })
      if (fails) engineMs += at - now
    })
  }
  const look = (now: number): void => {
    peak.note(Math.max(before, demand()), now, terms.downAfterMs)
    serve(now)
    before = demand()
    const load = {
      waiting: line.length,
      pressing: line.length,
      oldestSince: line.length === 0 ? null : arrivals[line[0]!]!.at,
      peak: peak.most(before, now, terms.downAfterMs),
      peakFallsAt: peak.fallsAt(terms.downAfterMs)
    }
    const plan = planReplicas(engines, load, { ...terms, awake }, now)
    for (const { type, index } of plan.actions) {
      const engine = engines[index - 1]!
      if (type === 'start') start(engine, now)
      else if (type === 'stop') stop(engine, now)
      else engine.stage = type === 'retire' ? 'retiring' : 'up'
    }
    if (plan.actions.some(({ type }) => type === 'keep')) serve(now)
    const up = engines.filter(({ stage }) => stage === 'up' || stage === 'retiring').length
    if (ups.at(-1)?.up !== up) ups.push({ at: now, up })
    if (plan.lookAt !== null) events.add(plan.lookAt, () => {})
  }
  arrivals.forEach(({ at }, i) => events.add(at, () => {
    awake = true
    line.push(i)
  }))
  const end = arrivals.at(-1)?.at ?? 0
  const last = end + 4 * 3_600_000
  for (let event = events.next(); event !== null && event.at <= last; event = events.next()) {
    event.run(event.at)
    look(event.at)
  }
  for (const engine of engines) if (engine.stage !== 'down' && engine.stage !== 'failed') engineMs += Math.max(0, end - engine.startedAt)
  return { waitsMs, ups, starts, stops, engineMs }
}

/** A heap by time, then by the order in which they were added. */
class Events {
  readonly #heap: Array<{ readonly at: number, readonly order: number, readonly run: (at: number) => void }> = []
  #order = 0

  add (at: number, run: (at: number) => void): void {
    const heap = this.#heap
    heap.push({ at, order: this.#order++, run })
    for (let i = heap.length - 1; i > 0;) {
      const parent = (i - 1) >> 1
      if (!this.#before(i, parent)) return
      this.#swap(i, parent)
      i = parent
    }
  }

  next (): { readonly at: number, readonly run: (at: number) => void } | null {
    const heap = this.#heap
    if (heap.length === 0) return null
    this.#swap(0, heap.length - 1)
    const first = heap.pop()!
    for (let i = 0; ;) {
      let least = i
      for (const child of [2 * i + 1, 2 * i + 2]) if (child < heap.length && this.#before(child, least)) least = child
      if (least === i) return first
      this.#swap(i, least)
      i = least
    }
  }

  #before (i: number, j: number): boolean {
    const [a, b] = [this.#heap[i]!, this.#heap[j]!]
    return a.at < b.at || (a.at === b.at && a.order < b.order)
  }

  #swap (i: number, j: number): void {
    [this.#heap[i], this.#heap[j]] = [this.#heap[j]!, this.#heap[i]!]
  }
}
