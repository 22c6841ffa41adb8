import type { Dispatcher } from 'undici'
import { isSvcError, svcError, type Logger, type RouteCall, type SlotLease, type SvcError } from '../../contract/index.js'
import type { ActiveRequest, ActiveRequests } from '../requests/active-requests.js'
import { boardSlot } from './board-slot.js'
import type { CallContext } from './call-context.js'
import { clientLeft, isGone } from '../answer/client-gone.js'
import { ClientSink, writeError } from '../answer/client-sink.js'
import { engineTarget, type EngineTarget } from '../route/engine-target.js'
import { EngineTunnel } from './engine-tunnel.js'
import { untouchedHeaders } from '../answer/headers.js'
import { PRIORITY_HEADER } from '../requests/priority.js'
import type { Route } from '../route/resolve.js'
import { callSlot } from './slot-call.js'

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
    const sink = new ClientSink(call.reply.raw, call.requestId, () => leave(clientLeft(call.requestId)))
    const request = this.#listed(call, target, sink, error => {
      sink.fail(error)
      leave(error)
    })
    const settle = (): void => active.remove(request)
    active.add(request)
    const leave = boardSlot({
      acquire: signal => slots.acquire(target.slot, signal, this.#isLight(call, target), request.priority),
      send: lease => {
        request.sent = true
        return this.#send(call, target, { lease, request, sink }, settle)
      },
      failed: error => {
        sink.fail(told(error))
        settle()
      },
      left: settle
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
    const { body, requestId, request: { method, headers, raw: { rawHeaders } } } = call
    return callSlot(this.#deps, {
      lease,
      surface: { path },
      asked: unread,
      body: body === undefined || body.length === 0 ? null : body,
      method: method as Dispatcher.HttpMethod,
      requestId,
      contentType: headers['content-type'] ?? '',
      headers: untouchedHeaders(rawHeaders, requestId),
      throughput: this.#deps.slots.throughput(slot),
      counter: request
    }, sink, settle)
  }

  /** A WebSocket takes no worker: it may stay open for days and say nothing. */
  #tunnel (call: PassedCall, target: EngineTarget): void {
    const { active, slots, told } = this.#deps
    const tunnel = new EngineTunnel(call.request.raw, call.reply.raw, call.requestId, () => {
      leave(clientLeft(call.requestId))
      active.remove(request)
    })
    const request = this.#listed(call, target, tunnel, error => tunnel.fail(error))
    active.add(request)
    const leave = boardSlot({
      acquire: signal => slots.acquire(target.slot, signal, true),
      send: lease => {
        request.sent = true
        slots.throughput(target.slot).request()
        tunnel.open(lease, target.path)
        // from here on its end is what frees the lease
        return () => {}
      },
      failed: error => tunnel.fail(told(error))
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
      headers: request.headers,
      tokens: 0,
      shared: null,
      index: -1,
      sink,
      stop
    }
  }
}

/** The body is the engine's business: no model was read from it. */
const unread = { model: '', stream: () => false }

export function passageOff (): SvcError {
  return svcError('dispatch.passage_off', '/upstream/ is switched off; `[dispatcher] engine_passage = true` lets requests through to the engines of slots')
}
