import type { ServerResponse } from 'node:http'
import type { AnyRoute, Logger } from '../../contract/index.js'
import { responsesOf } from './openapi-answers.js'
import type { Json } from './openapi-schemas.js'

type Head = readonly [status: number, ...rest: unknown[]]

/** Begins the log line of such an answer. */
export const UNDOCUMENTED = 'the OpenAPI document has no such answer:'

/** Header of an answer that the document does not know, which becomes a 500. */
export const MISFIT_HEADER = 'x-svc-undocumented-answer'

/**
 * For tests: lets no answer of a route out whose status or content type its document does not have. It is sent as a 500
 * instead, with a header that says what it was.
 */
export function answerCheck (route: AnyRoute, log: Logger): (response: ServerResponse) => void {
  // most routes are never asked by a test, and schemas are made when they are looked at
  let documented: Json | null = null
  return response => {
    const writeHead = response.writeHead.bind(response) as (...head: Head) => ServerResponse
    response.writeHead = ((...head: Head) => {
      const [status, ...rest] = head
      const misfit = undocumented(documented ??= documentedBy(route), status, typeOf(response, rest))
      if (misfit === null) return writeHead(...head)
      const what = `${route.method} ${route.url}: ${misfit}`
      log.error({ route: route.url, status }, `${UNDOCUMENTED} ${what}`)
      response.setHeader(MISFIT_HEADER, what.replaceAll(/[^\x20-\x7e]/g, '?'))
      return writeHead(500, ...rest)
    }) as typeof response.writeHead
  }
}

function documentedBy (route: AnyRoute): Json {
  const { schema, produces, status, answers } = route
  const words = responsesOf(route, schema?.response === undefined ? null : {})
  // a route that says nothing of its answer, which the kernel leaves to plugins of others, gives JSON, events or nothing
  const isSilent = schema?.response === undefined && produces === undefined && answers === undefined
  return isSilent ? { ...words, [status ?? 200]: { content: { 'application/json': {}, 'text/event-stream': {} } } } : words
}

/** What the document lacks, null when it has the answer. Pure. */
export function undocumented (documented: Json, status: number, type: string | null): string | null {
  const entry = documented[String(status)] ?? documented[`${Math.trunc(status / 100)}XX`] ?? (status >= 400 ? documented.default : undefined)
  if (entry === undefined) return `status ${status}`
  const types = Object.keys((entry as { readonly content?: Json }).content ?? {})
  // engines need not say what they answer
  return type === null || types.some(known => covers(known, type)) ? null : `status ${status} as ${type}`
}

function covers (known: string, type: string): boolean {
  return known === type || known === '*/*' || (known.endsWith('/*') && type.startsWith(known.slice(0, -1)))
}

function typeOf (response: ServerResponse, rest: readonly unknown[]): string | null {
  const given = rest.find(part => typeof part === 'object' && part !== null)
  const value = given === undefined ? undefined : fieldOf(given)
  const type = value ?? response.getHeader('content-type')
  return typeof type === 'string' ? type.split(';', 1)[0]!.trim().toLowerCase() : null
}

/** As `writeHead` takes them: an object, pairs, or names and values in turn. */
function fieldOf (headers: object): unknown {
  const pairs: ReadonlyArray<readonly [unknown, unknown]> = !Array.isArray(headers)
    ? Object.entries(headers)
    : Array.isArray(headers[0])
      ? headers as ReadonlyArray<readonly [unknown, unknown]>
      : headers.flatMap((name, i) => i % 2 === 0 ? [[name, headers[i + 1]] as const] : [])
  return pairs.find(([name]) => String(name).toLowerCase() === 'content-type')?.[1]
}
