import { z } from 'zod'
import { CliFailure, usageFailure } from '../failure.js'
import { cliWords } from './route-words.js'

/** Any service's refusal; whatever is not our envelope is shown as far as it can be. */
const envelopeSchema = z.looseObject({
  error: z.looseObject({
    code: z.string().nullish().catch(null),
    message: z.string(),
    details: z.looseObject({}).nullish().catch(null)
  })
})

/** The refusal of a server behind the gateway that speaks its own words. */
const problemSchema = z.looseObject({ loc: z.array(z.union([z.string(), z.number()])).catch([]), msg: z.string() })
const detailSchema = z.looseObject({ detail: z.union([z.string(), z.array(problemSchema).min(1)]) })

const fieldsSchema = z.array(z.looseObject({ path: z.string().catch(''), message: z.string() }))
const linesSchema = z.array(z.string())

/** The gateway answered, and the answer is no. */
export class ApiFailure extends CliFailure {
  readonly status: number
  readonly code: string | null

  /** @param base where it was looked for, if what is not the gateway could answer there */
  constructor (request: string, status: number, body: string, base: string | null = null) {
    const isForeign = base !== null && NO_SUCH_ROUTE.has(status) && parseJson(body) === undefined
    const { code, message, hints } = isForeign ? notAGateway(base) : readRefusal(body)
    super(`${message}${code === null ? '' : ` (${code})`}`, { hints, trace: `${request} -> HTTP ${status}` })
    this.name = 'ApiFailure'
    this.status = status
    this.code = code
  }
}

/** What servers answer to routes that they do not have. Proxies in front of a gateway that is down have other codes. */
const NO_SUCH_ROUTE = new Set([404, 405, 501])

function notAGateway (base: string): Refusal {
  return { code: null, message: `what answers at ${base} is not an svc gateway`, hints: ['Name the address of the gateway with --url or SVC_API_URL.'] }
}

export interface Refusal {
  readonly code: string | null
  readonly message: string
  readonly hints: readonly string[]
}

/** Reads the error envelope, or makes the best of what came instead. */
export function readRefusal (body: string): Refusal {
  const value = parseJson(body)
  const envelope = envelopeSchema.safeParse(value)
  if (!envelope.success) {
    const said = (detailIn(value) ?? body).trim().split('\n', 1)[0]?.slice(0, 200)
    return { code: null, message: said || 'no reason given', hints: [] }
  }
  const { code, message, details } = envelope.data.error
  const hints = [...fieldLines(details?.fields, message), ...logLines(details?.log_tail)]
  return { code: code ?? null, message: cliWords(message), hints }
}

function detailIn (value: unknown): string | null {
  const parsed = detailSchema.safeParse(value)
  if (!parsed.success) return null
  const { detail } = parsed.data
  return typeof detail === 'string' ? detail : detail.map(({ loc, msg }) => `${loc.slice(1).join('.')}: ${msg}`).join('; ')
}

/** @param told the refusal itself, which has often said it already */
function fieldLines (fields: unknown, told: string): string[] {
  const fresh = (fieldsSchema.safeParse(fields).data ?? []).filter(({ path, message }) =>
    message !== told && !(told.includes(message) && told.includes(path)))
  return fresh.map(({ path, message }) => `  ${path === '' ? '' : `${path}: `}${cliWords(message)}`)
}

function logLines (tail: unknown): string[] {
  const parsed = linesSchema.safeParse(tail)
  return parsed.success && parsed.data.length > 0 ? ['last lines of the engine:', ...parsed.data.slice(-20).map(line => `  ${line}`)] : []
}

function parseJson (text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const UNREACHABLE = new Set([
  'ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT', 'EADDRNOTAVAIL', 'ENOENT', 'EACCES'
])

/** The request did not get an answer. */
export function connectionFailure (request: string, base: string, error: Error): CliFailure {
  const code = (error as NodeJS.ErrnoException).code ?? error.message
  if (UNREACHABLE.has(code)) {
    return new CliFailure(`no gateway answers at ${base}`, {
      cause: error,
      hints: ['Start one with `svc serve`, or name another address with --url or SVC_API_URL.']
    })
  }
  return new CliFailure(`${request}: the connection was lost`, { cause: error })
}

export function timeoutFailure (request: string, timeoutMs: number): CliFailure {
  return new CliFailure(`${request}: no answer within ${timeoutMs / 1000} s`, {
    hints: ['The gateway may be overloaded; `svc status` shows whether it answers at all.']
  })
}

export function oddAnswer (request: string, what: string): CliFailure {
  return new CliFailure(`${request}: ${what}`, { hints: ['Is that address an svc gateway? Set it with --url or SVC_API_URL.'] })
}

/** `host:port` is taken for HTTP. */
export function parseBase (text: string): URL {
  const address = text.includes('://') ? text : `http://${text}`
  const url = URL.canParse(address) ? new URL(address) : null
  if (url === null || !['http:', 'https:'].includes(url.protocol) || url.hostname === '') {
    throw usageFailure(`'${text}' is not a gateway address`, ['Use an address such as http://127.0.0.1:8080.'])
  }
  return url
}
