import type { Dispatcher } from 'undici'
import { isSvcError, svcError, type Logger, type RouteCall, type SlotLease, type SvcError } from '../../contract/index.js'
import type { ActiveRequest, ActiveRequests } from '../requests/active-requests.js'
import type { CallContext } from './call-context.js'
import { clientLeft, isGone } from '../answer/client-gone.js'
import { ClientSink, writeError } from '../answer/client-sink.js'
import { originOf } from './connections.js'
import { engineTarget, type EngineTarget } from '../route/engine-target.js'
import { EngineTunnel } from './engine-tunnel.js'
import { Exchange } from './exchange.js'
import { forEngine, untouchedHeaders } from '../answer/headers.js'
import { PRIORITY_HEADER } from '../requests/priority.js'
import type { Route } from '../route/resolve.js'
import { StreamShaper } from '../answer/stream-shaper.js'

export interface PassageDeps extends CallContext {
  readonly resolve: (name: string) => Route | null
  readonly active: ActiveRequests
  readonly log: Logger
  /** What a client learns of a failure. */
  readonly told: (error: unknown) => SvcError
}

type PassedCall = Pick<RouteCall<unknown, unknown, Buffer | undefined>, 'request' | 'reply' | 'body' | 'requestId'>

interface Sending {
  readonly lease: SlotLease
  readonly request: ActiveRequest
  readonly sink: ClientSink
}

/**
 * Requests that go to a slot's engine as they came, on every path that it has. The slot is loaded first if it must be, and
 * held by a lease until the answer, or the WebSocket, has ended.
 */
export class EnginePassage {
  readonly #deps: PassageDeps

  constructor (deps: PassageDeps) {
    this.#deps = deps
  }

  /** Answers in every case. @param target what follows `/upstream/` in the request line */
  pass (call: PassedCall, target: string): void {
    const { reply: { raw: res }, requestId } = call
    if (isGone(res)) return
    try {
      const found = engineTarget(target, this.#deps.resolve)
      if (isSvcError(found)) return writeError(res, found, requestId)
      if (found.path === '') return this.#toFolder(call, found)
      if ((call.request.raw as { upgrade?: unknown }).upgrade === true) this.#tunnel(call, found)
      else this.#forward(call, found)
    } catch (error) {
      writeError(res, this.#deps.told(error), requestId)
    }
  }

  /** Relative links of an engine's page need the slash behind its name. */
  #toFolder ({ request, reply: { raw: res }, requestId }: PassedCall, { name }: EngineTarget): void {
    const [path = '', ...query] = (request.raw.url ?? '').split('?')
    const last = path.slice(path.lastIndexOf('/') + 1)
    const location = `./${last}/${query.length === 0 ? '' : `?${query.join('?')}`}`
    res.writeHead(request.method === 'GET' || request.method === 'HEAD' ? 302 : 308, {
      'x-request-id': requestId, location, 'content-length': 0
    })
    res.end()
    this.#deps.log.debug({ request_id: requestId, model: name }, 'the page of an engine was asked for without the slash behind its name')
  }

  #forward (call: PassedCall, target: EngineTarget): void {
    const { active, slots, told } = this.#deps
    const waiting = new AbortController()
    let leave = (reason: Error): void => waiting.abort(reason)
    const giveUp = (reason: Error): void => {
      leave(reason)
      settle()
    }
    const sink = new ClientSink(call.reply.raw, call.requestId, () => giveUp(clientLeft(call.requestId)))
    const request = this.#listed(call, target, sink, error => {
      sink.fail(error)
      giveUp(error)
    })
    const settle = (): void => active.remove(request)
    active.add(request)
    slots.acquire(target.slot, waiting.signal, this.#isLight(call, target), request.priority).then(lease => {
      if (waiting.signal.aborted) return lease.release()
      request.sent = true
      leave = this.#send(call, target, { lease, request, sink }, settle)
    }).catch((error: unknown) => {
      if (waiting.signal.aborted) return
      sink.fail(told(error))
      settle()
    })
  }

  /** What is only read must not wait behind what is computed; other paths are the provider's to tell. */
  #isLight ({ request: { method } }: PassedCall, { slot, path }: EngineTarget): boolean {
    if (method === 'GET' || method === 'HEAD') return true
    return this.#deps.slots.provider(slot)?.lightPaths?.includes(path.split('?', 1)[0]!) ?? false
  }

  #send (
    call: PassedCall, { slot, path }: EngineTarget, { lease, request, sink }: Sending, settle: () => void
  ): (reason: Error) => void {
    const { clock, config, connections, slots } = this.#deps
    const throughput = slots.throughput(slot)
    const { dispatcher: times, slots: slotTimes } = config.snapshot.svc
    throughput.request()
    const shaper = new StreamShaper(sink, throughput, request, clock)
    const exchange = new Exchange(shaper, { label: `slot '${slot}'`, details: { slot } }, outcome => {
      lease.release(outcome === 'failed')
      settle()
    })
    exchange.send(connections, {
      origin: originOf(lease.address),
      path,
      method: call.request.method as Dispatcher.HttpMethod,
      headers: forEngine(untouchedHeaders(call.request.raw.rawHeaders, call.requestId), lease.address),
      body: call.body === undefined || call.body.length === 0 ? null : call.body,
      alone: lease.provider.keepsConnections === false,
      headersTimeoutMs: slotTimes.first_token_timeout_s * 1000,
      bodyTimeoutMs: times.direct_read_timeout_s * 1000,
      resend: true
    })
    return reason => exchange.abort(reason)
  }

  /** A WebSocket takes no worker: it may stay open for days and say nothing. */
  #tunnel (call: PassedCall, target: EngineTarget): void {
    const { active, slots, told } = this.#deps
    const waiting = new AbortController()
    const settle = (): void => active.remove(request)
    const tunnel = new EngineTunnel(call.request.raw, call.reply.raw, call.requestId, () => {
      waiting.abort(clientLeft(call.requestId))
      settle()
    })
    const request = this.#listed(call, target, tunnel, error => {
      waiting.abort(error)
      tunnel.fail(error)
    })
    active.add(request)
    slots.acquire(target.slot, waiting.signal, true).then(lease => {
      if (tunnel.done) return lease.release()
      request.sent = true
      slots.throughput(target.slot).request()
      tunnel.open(lease, target.path)
    }).catch((error: unknown) => {
      if (!tunnel.done) tunnel.fail(told(error))
    })
  }

  #listed (
    { body, request, requestId }: PassedCall, { name, slot }: EngineTarget, sink: ActiveRequest['sink'], stop: (error: SvcError) => void
  ): ActiveRequest {
    return {
      id: requestId,
      model: name,
      surface: 'engine',
      priority: request.headers[PRIORITY_HEADER] === 'low' ? 'low' : 'normal',
      slot,
      upstream: null,
      sent: false,
      attempt: 1,
      note: null,
      startedAt: this.#deps.clock.monotonic(),
      bytesIn: body?.length ?? 0,
      tokens: 0,
      shared: null,
      index: -1,
      sink,
      stop
    }
  }
}

export function passageOff (): SvcError {
  return svcError('dispatch.passage_off', '/upstream/ is switched off; `[dispatcher] engine_passage = true` lets requests through to the engines of slots')
}
