import type { ServerResponse } from 'node:http'
import {
  errorEnvelope, isSvcError, svcError, type Clock, type Logger, type SseEvent, type SseReply, type Timer, type WireDialect
} from '../../contract/index.js'
import { clientLeft, isGone, onClose, probedBy, writeLeadingZero } from '../../dispatch/answer/client-gone.js'
import { OpenSockets } from './web-sockets.js'

const KEEP_ALIVE_MS = 15_000

/** Streams and WebSockets that are open, so that a stopping gateway can end them. */
export class OpenStreams {
  readonly sockets = new OpenSockets()
  readonly #controllers = new Set<AbortController>()

  get size (): number { return this.#controllers.size }

  open (): { readonly controller: AbortController, readonly close: () => void } {
    const controller = new AbortController()
    this.#controllers.add(controller)
    return { controller, close: () => { this.#controllers.delete(controller) } }
  }

  closeAll (): void {
    this.sockets.closeAll()
    for (const controller of this.#controllers) controller.abort(new Error('the gateway is stopping'))
  }
}

export interface SseDeps {
  readonly clock: Clock
  readonly streams: OpenStreams
  readonly log: Logger
  /** How a failing source is told; absent: in the error envelope. */
  readonly failure?: WireDialect['failure']
}

export function streamType ({ asLines = false }: SseReply): string {
  return asLines ? 'application/x-ndjson' : 'text/event-stream; charset=utf-8'
}

/**
 * Writes a handler's events to the client: one at a time, at the client's pace, with comment lines while there
 * is nothing to say. Ends when the events end or the client leaves; a failing source ends with an error event.
 */
export async function sendSse (
  res: ServerResponse, stream: SseReply, requestId: string, { clock, streams, log, failure = errorEnvelope }: SseDeps
): Promise<void> {
  if (isGone(res)) return
  const { controller, close } = streams.open()
  const { signal } = controller
  const gone = (): void => controller.abort(clientLeft(requestId))
  const unwatch = onClose(res, gone)
  res.on('error', gone)
  probedBy(res, { probe: () => { if (res.chunkedEncoding && !res.writableNeedDrain) writeLeadingZero(res) } })
  res.writeHead(200, {
    'content-type': streamType(stream),
    'cache-control': 'no-cache',
    'x-accel-buffering': 'no',
    'x-request-id': requestId
  })
  res.flushHeaders()
  const format = stream.asLines === true ? lineOf : eventOf
  let timer: Timer = clock.setTimer(KEEP_ALIVE_MS, keepAlive)
  function keepAlive (): void {
    // one who does not read is not kept alive by more to read
    if (!res.writableNeedDrain) res.write(stream.asLines === true ? ' ' : ': keep-alive\n\n')
    timer = clock.setTimer(KEEP_ALIVE_MS, keepAlive)
  }
  try {
    for await (const event of stream.events(signal)) {
      if (signal.aborted) break
      if (!res.write(format(event))) await drained(res, signal)
    }
  } catch (error) {
    if (!signal.aborted) {
      if (!isSvcError(error)) log.error({ request_id: requestId, err: error }, 'a stream failed')
      const known = isSvcError(error) ? error : svcError('system.internal', `the stream failed; see the log, request id ${requestId}`, { cause: error })
      res.write(format({ event: 'error', data: failure(known, requestId) }))
    }
  } finally {
    timer.cancel()
    close()
    unwatch()
    res.end()
  }
}

function lineOf ({ data }: SseEvent): string {
  return `${JSON.stringify(data ?? null)}\n`
}

function eventOf ({ event, id, data }: SseEvent): string {
  return `${field('event', event)}${field('id', id)}data: ${JSON.stringify(data ?? null)}\n\n`
}

/** A field is one line, whatever is in it. */
function field (name: string, value: string | number | undefined): string {
  return value === undefined ? '' : `${name}: ${String(value).replace(/[\r\n]+/g, ' ')}\n`
}

function drained (res: ServerResponse, signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    const done = (): void => {
      res.off('drain', done)
      signal.removeEventListener('abort', done)
      resolve()
    }
    res.once('drain', done)
    signal.addEventListener('abort', done, { once: true })
    if (signal.aborted) done()
  })
}
