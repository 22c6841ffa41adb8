import { agentOf, shownName, stateWords, svcError, type AgentCatalog, type Clock, type RequestService, type RequestSummary, type RequestView, type SlotStatus } from '../../contract/index.js'
import { WallTime } from '../../state/wall-time.js'
import { isLoading, isServing } from '../../slots/schedule/slot-machine.js'
import type { ActiveRequest, ActiveRequests } from './active-requests.js'
import type { RequestHistory } from './request-history.js'

export interface RequestListDeps {
  readonly history: RequestHistory
  readonly active: ActiveRequests
  readonly agents: Pick<AgentCatalog, 'list'>
  readonly clock: Clock
  readonly slots: { names (): readonly string[], status (name: string): SlotStatus }
}

/** What is in flight, as the rest of the gateway sees it (contract `RequestService`). */
export class RequestList implements RequestService {
  readonly #deps: RequestListDeps
  readonly #wall: WallTime

  constructor (deps: RequestListDeps) {
    this.#deps = deps
    this.#wall = new WallTime(deps.clock)
  }

  list (): readonly RequestView[] {
    const { active, agents, clock, slots } = this.#deps
    const names = new Set(slots.names())
    const statusOf = (slot: string | null): SlotStatus | null => slot !== null && names.has(slot) ? slots.status(slot) : null
    return [...active.list()].sort((a, b) => a.startedAt - b.startedAt)
      .map(request => requestView(request, {
        agent: agentOf(request.headers, agents),
        status: statusOf(request.slot),
        now: clock.monotonic(),
        startedAt: this.#wall.of(request.startedAt)
      }))
  }

  cancel (id: string): number {
    return this.#stop(request => request.id === id)
  }

  cancelWaiting (slot: string): number {
    return this.#stop(request => request.slot === slot && !request.sent)
  }

  #stop (isMeant: (request: ActiveRequest) => boolean): number {
    const meant = this.#deps.active.list().filter(isMeant)
    for (const request of meant) request.stop(svcError('request.cancelled', 'the request was cancelled by an operator'))
    return meant.length
  }

  summary (windowS: number): RequestSummary {
    return this.#deps.history.summary(windowS)
  }
}

/** What the list knows of a request besides. */
export interface RequestAround {
  readonly agent: string | null
  /** Of its slot; null when it has none. */
  readonly status: SlotStatus | null
  /** On the monotonic clock. */
  readonly now: number
  /** Epoch milliseconds. */
  readonly startedAt: number
}

/** Pure. */
export function requestView (request: ActiveRequest, { agent, status, now, startedAt }: RequestAround): RequestView {
  return {
    id: request.id,
    model: shownName(request.model),
    surface: request.surface,
    agent,
    slot: request.slot,
    upstream: request.upstream,
    ...progress(request, status),
    priority: request.priority,
    attempt: Math.max(1, request.attempt),
    started_at: new Date(startedAt).toISOString(),
    age_ms: Math.round(now - request.startedAt),
    bytes_in: request.bytesIn,
    bytes_out: request.sink.bytesOut,
    tokens: (request.shared ?? request).tokens
  }
}

function progress ({ model, sent, sink, slot, upstream, note }: ActiveRequest, status: SlotStatus | null): Pick<RequestView, 'phase' | 'reason'> {
  if (sink.flowing) return { phase: 'streaming', reason: null }
  if (note !== null) return { phase: 'queued', reason: note }
  if (sent) return { phase: 'waiting', reason: null }
  if (model === '') return { phase: 'queued', reason: 'the `model` field of the form has not arrived yet' }
  if (slot === null && upstream === null) return { phase: 'queued', reason: 'the model lists of upstreams are being fetched' }
  if (status === null) return { phase: 'queued', reason: null }
  const { name, state, message, inFlight, waiting, workers } = status
  if (isLoading(state)) return { phase: 'loading', reason: `slot '${name}' is ${state}${message === '' ? '' : `: ${message}`}` }
  if (isServing(state)) return { phase: 'queued', reason: `slot '${name}' is busy: ${inFlight} running${workers === null ? '' : ` on ${workers} worker${workers === 1 ? '' : 's'}`}, ${waiting} waiting` }
  return { phase: 'queued', reason: `slot '${name}' is ${stateWords(state)} and will be started` }
}
