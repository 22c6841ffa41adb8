import type { ServerResponse } from 'node:http'
import type {
  Clock, ForwardOptions, Logger, NamedSlotConfig, OutgoingCall, RouteCall, Surface, SurfaceName
} from '../../contract/index.js'
import type { ActiveRequest, ActiveRequests } from '../requests/active-requests.js'
import type { ReaderSink } from '../answer/answer-sink.js'
import { clientLeft } from '../answer/client-gone.js'
import { ClientSink } from '../answer/client-sink.js'
import { TappedSink } from '../answer/tapped-sink.js'
import type { BodyView } from '../body/body-view.js'
import { CallSink } from './call-sink.js'
import type { VIA_HEADER } from '../requests/loop-guard.js'
import { PRIORITY_HEADER, priorityOf } from '../requests/priority.js'
import { rewrittenBody } from '../body/rewritten-body.js'

/** What is sent on: a client's request, or a plugin's in the same shape. */
export interface Asked extends Pick<RouteCall<unknown, unknown, Buffer>, 'requestId' | 'body'> {
  readonly request: {
    readonly headers: {
      readonly 'content-type'?: string | undefined
      readonly [PRIORITY_HEADER]?: string | readonly string[] | undefined
      readonly [VIA_HEADER]?: string | readonly string[] | undefined
    }
    readonly raw: { readonly rawHeaders: readonly string[] }
  }
  /** Headers of the client's request that a plugin's is a part of. */
  readonly origin?: OutgoingCall['headers'] | undefined
}

/** A request on its way. */
export interface Prepared extends ActiveRequest {
  readonly surface: SurfaceName
  readonly asked: Asked
  readonly options: ForwardOptions
  /** Null for a body that is not JSON, which goes out as it is. */
  readonly view: BodyView | null
  /** Another stands before it while it is not known whether the place speaks the surface. */
  sink: ReaderSink
  /** It is answered over another surface: what ends on its own surface does not end it. */
  isElsewhere: boolean
  /** Gives up what the client waits for. Set once the request is on its way. */
  giveUp: (reason: Error) => void
  readonly settle: () => void
}

export interface PrepareDeps {
  readonly clock: Clock
  readonly log: Logger
  readonly active: ActiveRequests
}

/** Begins a request: from here on it is one of the active ones, until it settles. */
export function prepare (
  { clock, log, active }: PrepareDeps, asked: Asked, options: ForwardOptions, view: BodyView | null, model: string,
  reader: ServerResponse | CallSink
): Prepared {
  const gone = (): void => prepared.giveUp(clientLeft(asked.requestId))
  const left = (): void => {
    const before = prepared.sent ? 'its answer was complete' : 'its request reached an engine'
    log.debug({ request_id: asked.requestId }, `the client left before ${before}`)
    gone()
  }
  const sink = reader instanceof CallSink ? reader : new ClientSink(reader, asked.requestId, left, options.dialect)
  if (sink instanceof CallSink) sink.onGone = gone
  const prepared: Prepared = {
    asked,
    options,
    view,
    sink,
    id: asked.requestId,
    model,
    surface: options.surface,
    priority: priorityOf(asked.request.headers[PRIORITY_HEADER], options.surface, view?.isTrue('stream') === true),
    slot: null,
    upstream: null,
    sent: false,
    attempt: 0,
    note: null,
    startedAt: clock.monotonic(),
    bytesIn: asked.body.length,
    headers: asked.origin ?? asked.request.headers,
    tokens: 0,
    shared: null,
    index: -1,
    giveUp: () => prepared.settle(),
    isElsewhere: false,
    settle: () => {
      if (!prepared.isElsewhere) active.remove(prepared)
    },
    stop: error => {
      sink.fail(error)
      prepared.giveUp(error)
    }
  }
  if (options.tap !== undefined) prepared.sink = new TappedSink(sink, options.tap, () => prepared.upstream, log)
  active.add(prepared)
  return prepared
}

/**
 * The body as one place gets it.
 * @param slot its configuration, null for an upstream
 * @param surface of the slot's provider
 */
export function outgoingBody (
  { asked, options, view }: Prepared, modelId: string, slot: NamedSlotConfig | null, surface?: Surface
): Buffer {
  return view === null ? asked.body : rewrittenBody(view, withEdit(options, surface?.edit), modelId, slot)
}

function withEdit (options: ForwardOptions, edit: Surface['edit']): ForwardOptions {
  if (edit === undefined) return options
  return {
    ...options,
    edit: (body, slot) => {
      const [own, further] = [options.edit?.(body, slot) ?? null, edit(body, slot)]
      if (own === null || further === null) return own ?? further
      return {
        set: { ...own.set, ...further.set }, add: { ...own.add, ...further.add }, drop: [...own.drop ?? [], ...further.drop ?? []]
      }
    }
  }
}
