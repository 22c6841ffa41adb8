import type { Dispatcher } from 'undici'
import { askHttp, bounded, isEvents, whole, type HttpAnswer } from './http-answer.js'

/** Answers that have no body. */
const EMPTY = new Set([204, 205, 304])

/**
 * A `fetch` that follows no redirect (the transport follows those that stay at their origin), and whose answers, and single
 * events in event streams, are bounded.
 */
export function boundedFetch (dispatcher: Dispatcher): typeof globalThis.fetch {
  return async (input, init = {}) => await responseOf(await askHttp(dispatcher, input instanceof Request ? input.url : input, {
    method: init.method ?? 'GET',
    headers: Object.fromEntries(new Headers(init.headers)),
    body: (init.body ?? null) as string | null,
    signal: init.signal ?? null
  }))
}

export async function responseOf ({ status, headers: received, body }: HttpAnswer): Promise<Response> {
  const headers = Object.entries(received)
    .flatMap(([name, value]) => [value ?? []].flat().map((one): [string, string] => [name, one]))
  const head = { status: status >= 200 && status <= 599 ? status : 502, headers }
  if (isEvents(received['content-type'])) return new Response(ReadableStream.from(bounded(body)), head)
  const bytes = await whole(body)
  return new Response(EMPTY.has(status) ? null : bytes, head)
}
