import { type SvcError } from 'svc-gateway/plugin'
import { hfError } from './errors.js'

/** What is needed of a refusal. Header names are lowercase. */
export interface Refusal {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** The beginning of the body. */
  readonly text: string
}

export interface AskedFor {
  readonly endpoint: string
  readonly hasToken: boolean
  readonly repo: string | null
  readonly path: string | null
  readonly now: number
}

const MAX_MESSAGE = 300

/**
 * A refusal of the hub as an error with the next step. The hub answers 401 for what is missing, private or gated alike
 * when it does not know the caller, and says which in `x-error-code`. Pure.
 */
export function refusalError (asked: AskedFor, refusal: Refusal): SvcError {
  const { status } = refusal
  const { endpoint, hasToken, repo } = asked
  const code = header(refusal, 'x-error-code')
  const what = repo === null ? endpoint : `${repo} at ${endpoint}`
  const details = { status, ...(repo === null ? {} : { repo }) }
  const accessTo = 'put a token with access into HF_TOKEN (api.env or the environment)'
  if (code === 'GatedRepo' || (status === 403 && repo !== null && code === '')) {
    const page = `${endpoint}/${repo}`
    return hfError('hf.gated', `${repo} is gated: accept its licence at ${page}, then ${hasToken ? 'use a token of that account in HF_TOKEN' : accessTo}`,
      { details: { ...details, license_page: page } })
  }
  if (code === 'RevisionNotFound') return hfError('hf.file_not_found', `${what} has no such revision; name a branch, tag or commit of it`, { details })
  if (code === 'EntryNotFound') {
    return hfError('hf.file_not_found', `${what} has no file ${asked.path ?? ''}; POST /api/models/inspect lists what it has`,
      { details: { ...details, path: asked.path } })
  }
  if (status === 401 && hasToken && code !== 'RepoNotFound') {
    return hfError('hf.token_rejected', `${endpoint} does not accept the token in HF_TOKEN; make a new one at ${endpoint}/settings/tokens`, { details })
  }
  if (status === 401 || code === 'RepoNotFound' || (status === 404 && asked.path === null)) {
    return hfError('hf.repo_not_found', `there is no ${what}, or it is private; check its name, or ${accessTo}`, { details })
  }
  if (status === 404) return hfError('hf.file_not_found', `${what} has no file ${asked.path}`, { details: { ...details, path: asked.path } })
  if (status === 429 || status === 503) {
    const wait = retryAfter(header(refusal, 'retry-after'), asked.now)
    return hfError('hf.rate_limited', `${endpoint} ${status === 429 ? 'asks for fewer requests' : 'is overloaded'} (${status}); try again ${wait === null ? 'later' : `in ${wait} s`}`,
      { details: { ...details, ...(wait === null ? {} : { retry_after_s: wait }) } })
  }
  return hfError('hf.upstream_error', `${endpoint} answers ${status}${messageIn(refusal)}`, { details })
}

/** No answer at all. */
export function unreachable (endpoint: string, cause: unknown): SvcError {
  const { code = null } = cause as { code?: string }
  return hfError('hf.unreachable', `${endpoint} cannot be reached; check the network, HF_ENDPOINT and proxies`,
    { cause, details: { endpoint, cause: code } })
}

/** Seconds from a `Retry-After`, which is a number or a date; null for neither. Pure. */
export function retryAfter (value: string, now: number): number | null {
  if (/^\d+(\.\d+)?$/.test(value)) return Math.ceil(Number(value))
  const at = value === '' ? NaN : Date.parse(value)
  return Number.isNaN(at) ? null : Math.max(0, Math.ceil((at - now) / 1000))
}

function header ({ headers }: Refusal, name: string): string {
  const value = headers[name]
  return typeof value === 'string' ? value : ''
}

function messageIn (refusal: Refusal): string {
  const told = header(refusal, 'x-error-message') || errorField(refusal.text)
  const text = told.replace(/[^\x20-\x7e]+/g, ' ').trim().slice(0, MAX_MESSAGE)
  return text === '' ? '' : `: ${text}`
}

function errorField (text: string): string {
  try {
    const { error } = JSON.parse(text) as { error?: unknown }
    return typeof error === 'string' ? error : ''
  } catch {
    return ''
  }
}
