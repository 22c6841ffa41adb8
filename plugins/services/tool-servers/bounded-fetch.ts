import { Agent, fetch, type Dispatcher, type RequestInit } from 'undici'
import { MAX_MESSAGE_BYTES } from './message-reader.js'

const CONNECT_MS = 10_000

/** HTTP to tool servers. No silence is too long for it: calls have limits of their own. */
export function createAgent (): Dispatcher {
  return new Agent({ connect: { timeout: CONNECT_MS }, headersTimeout: 0, bodyTimeout: 0 })
}

/**
 * A `fetch` that follows no redirect (the transport follows those that stay at their origin), and whose answers, and single
 * events in event streams, are bounded.
 */
export function boundedFetch (dispatcher: Dispatcher): typeof globalThis.fetch {
  return async (input, init) => {
    const url = input instanceof Request ? input.url : input
    const response = await fetch(url, { ...init as unknown as RequestInit, redirect: 'manual', dispatcher })
    const body = response.body as ReadableStream<Uint8Array> | null
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
    return new Response(body === null ? null : body.pipeThrough(bounded(isStream)), {
      status: response.status === 0 ? 502 : response.status,
      statusText: response.statusText,
      headers: [...response.headers]
    })
  }
}

/** Of an event stream, what is between two line ends is bounded, for the stream itself may go on for days. */
function bounded (isStream: boolean): TransformStream<Uint8Array, Uint8Array> {
  let size = 0
  return new TransformStream({
    transform (chunk, controller) {
      const end = isStream ? chunk.lastIndexOf(0x0A) : -1
      size = end < 0 ? size + chunk.length : chunk.length - end
      if (size > MAX_MESSAGE_BYTES) controller.error(new Error(`the answer is larger than ${MAX_MESSAGE_BYTES / 1024 / 1024} MiB`))
      else controller.enqueue(chunk)
    }
  })
}
