import { ERROR_BRAND, hasBrand } from '../brand.js'
import { errorCodes, isErrorCode, type ErrorCode, type ErrorRow } from './error-codes.js'
import { shownFacts, shownMessage } from '../text/shown-text.js'

export interface SvcErrorOptions {
  /** Machine-readable facts for the client. Never holds a secret or a submitted value. */
  readonly details?: Readonly<Record<string, unknown>>
  /** Name of the request field at fault, for clients of the OpenAI error shape. */
  readonly param?: string
  readonly cause?: unknown
  /** Whether the failure passes by itself, where this one is not of the class that its row in error-codes.ts names. */
  readonly heals?: boolean
}

/**
 * The one error type. Discriminate on `code`; do not subclass.
 * `message` says what, which, and the next step; it is shown to clients for every status.
 */
export class SvcError extends Error {
  readonly code: string
  readonly status: number
  readonly details: Readonly<Record<string, unknown>>
  readonly param: string | null
  /** Null: as the row of the code says. Ask `mayHeal`. */
  readonly heals: boolean | null

  constructor (code: string, status: number, message: string, options: SvcErrorOptions = {}) {
    super(shownMessage(message), options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'SvcError'
    this.code = code
    this.status = status
    this.details = options.details === undefined ? {} : shownFacts(options.details)
    this.param = options.param ?? null
    this.heals = options.heals ?? null
    Object.defineProperty(this, ERROR_BRAND, { value: true })
  }
}

export function isSvcError (value: unknown): value is SvcError {
  return hasBrand(value, ERROR_BRAND)
}

/** A `SvcError` of the kernel's table in error-codes.ts: the status comes from there. Plugins have theirs by `defineErrors`. */
export function svcError (code: ErrorCode, message: string, options?: SvcErrorOptions): SvcError {
  return new SvcError(code, errorCodes[code].status, message, options)
}

/** Body of every non-2xx answer of the service's own, on every path. */
export interface ErrorEnvelope {
  readonly error: {
    readonly code: string
    readonly message: string
    readonly type: string
    readonly param: string | null
    readonly details: Readonly<Record<string, unknown>>
    readonly request_id: string
  }
}

/** The `type` that clients of the OpenAI wire format switch on. */
export function errorType (status: number): string {
  if (status === 401) return 'authentication_error'
  if (status === 403) return 'permission_error'
  if (status === 404) return 'not_found_error'
  if (status === 409) return 'conflict_error'
  if (status === 429) return 'rate_limit_error'
  if (status === 503) return 'overloaded_error'
  return status >= 500 ? 'server_error' : 'invalid_request_error'
}

export function errorEnvelope (error: SvcError, requestId: string): ErrorEnvelope {
  return {
    error: {
      code: error.code,
      message: error.message,
      type: errorType(error.status),
      param: error.param,
      details: error.details,
      request_id: requestId
    }
  }
}

/** Seconds after which a retry makes sense, from `details.retry_after_s`; null when it does not. */
export function retryAfterS (error: SvcError): number | null {
  const value = error.details.retry_after_s
  return typeof value === 'number' && value > 0 ? Math.ceil(value) : null
}

/**
 * Whether the same request may succeed later without any change. A code of a plugin's own
 * is judged by its status.
 */
export function mayHeal (error: SvcError): boolean {
  if (retryAfterS(error) !== null) return true
  // an error of another copy of the contract may not have the field
  const own = error.heals as boolean | null | undefined
  if (typeof own === 'boolean') return own
  if (!isErrorCode(error.code)) return healingStatuses.includes(error.status)
  const row: ErrorRow = errorCodes[error.code]
  return row.heals === true
}

const healingStatuses: readonly number[] = [408, 425, 429, 502, 503, 504]

/** What tells SDKs whether to ask again: one header as name and value, or none when the status tells enough. */
export function retryHeader (error: SvcError): readonly [name: string, value: string] | null {
  const wait = retryAfterS(error)
  if (wait !== null) return ['retry-after', String(wait)]
  return mayHeal(error) ? null : ['x-should-retry', 'false']
}

export function messageOf (error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
