import { request } from 'undici'
import {
  atPort, shownName, type Clock, type EngineAddress, type HealthAnswer, type HealthCheck, type HealthReport, type HealthVerdict
} from '../../../contract/index.js'
import { linkedAbort, pause } from '../../../async/waiting.js'

/**
 * `refused` nothing listens; `silent` something does and does not answer in time; else what the provider makes of the
 * answer, with its status where there is one to tell.
 */
export type ProbeResult = HealthVerdict | 'refused' | 'silent' | HealthReport & { readonly status: number }

/** Asks an engine once for its health. Never rejects, except with the signal's reason. */
export type HealthProbe = (address: EngineAddress, check: HealthCheck, signal: AbortSignal) => Promise<ProbeResult>

const PROBE_TIMEOUT_MS = 3_000
const LONGEST_ANSWER_BYTES = 1024 * 1024
const SHORTEST_PAUSE_MS = 10
const LONGEST_PAUSE_MS = 500
const PAUSE_SHARE = 0.05
/** An engine that has only just started may refuse connections without that being news. */
const NEWS_AFTER_MS = 2_000
const LOOK_AGAIN_MS = 250
const LOOKS = 9

export function defaultVerdict (answer: HealthAnswer): HealthVerdict {
  if (answer.status === 200) return 'ok'
  return answer.status === 503 ? 'loading' : 'failed'
}

export const probeHealth: HealthProbe = async (address, check, signal) => {
  const host = address.host.includes(':') ? `[${address.host}]` : address.host
  const over = linkedAbort(signal)
  const late = setTimeout(() => over.controller.abort(), PROBE_TIMEOUT_MS)
  late.unref()
  try {
    const { port } = atPort(address, check.port)
    const answer = await request(`http://${host}:${port}${check.path}`, {
      ...(address.headers === undefined ? {} : { headers: address.headers }),
      // looks are seconds apart, and what is kept open until then costs timers at both ends
      reset: true,
      signal: over.controller.signal,
      headersTimeout: 0,
      bodyTimeout: 0
    })
    const said = (check.verdict ?? defaultVerdict)({ status: answer.statusCode, json: await readJson(answer.body) })
    return { ...typeof said === 'string' ? { verdict: said } : said, status: answer.statusCode }
  } catch (error) {
    if (signal.aborted) throw signal.reason
    const code = (error as { code?: string }).code
    return code === 'ECONNREFUSED' || code === 'ECONNRESET' || code === 'UND_ERR_SOCKET' ? 'refused' : 'silent'
  } finally {
    clearTimeout(late)
    over.dispose()
  }
}

/** Between two looks at an engine that loads: a share of what it has taken so far, so that waiting costs as little. Pure. */
export function pollPauseMs (elapsedMs: number): number {
  return Math.min(LONGEST_PAUSE_MS, Math.max(SHORTEST_PAUSE_MS, elapsedMs * PAUSE_SHARE))
}

export interface HealthWait {
  readonly probe: HealthProbe
  readonly address: EngineAddress
  readonly check: HealthCheck
  readonly clock: Clock
  /** How long it may refuse connections, or answer with a 4xx status; 0 is for ever. Read every time. */
  readonly refusedMs: () => number
  /** What the engine reports of its start, and what the health check says once that is no longer what every start looks like. */
  readonly told: (said: string, progress: number | null) => void
}

/**
 * Polls until the engine is well. Ends by success, by the signal (the caller holds the budget), or with what it said
 * once it has refused for too long.
 */
export async function untilHealthy (
  { probe, address, check, clock, refusedMs, told }: HealthWait, signal: AbortSignal
): Promise<void> {
  const begun = clock.monotonic()
  let refusedSince: number | null = null
  let [said, times] = ['', 0]
  let reported = ''
  for (;;) {
    const askedAt = clock.monotonic()
    const result = await probe(address, check, signal)
    if (verdictOf(result) === 'ok') return
    const words = wordsOf(check.path, result)
    times = words === said ? times + 1 : 1
    said = words
    const summary = times === 1 ? said : `${said}, ${times} times`
    const report = reportOf(result)
    if (report !== null) {
      if (report.text !== reported) told(report.text, report.progress)
      reported = report.text
    } else if (askedAt - begun >= NEWS_AFTER_MS && verdictOf(result) !== 'loading') told(summary, null)
    refusedSince = isRefusal(result) ? refusedSince ?? askedAt : null
    const limitMs = check.listensLate === true && result === 'refused' ? 0 : refusedMs()
    const isOver = refusedSince !== null && limitMs > 0 && clock.monotonic() - refusedSince >= limitMs
    if (isOver) throw new HealthRefused(summary, limitMs)
    await pause(clock, pollPauseMs(clock.monotonic() - begun), signal)
    signal.throwIfAborted()
  }
}

/** The engine runs and its health check will not come to anything. */
export class HealthRefused extends Error {
  readonly limitMs: number

  constructor (said: string, limitMs: number) {
    super(said)
    this.limitMs = limitMs
  }
}

/** What an engine that loads says of it, in one line. */
function reportOf (result: ProbeResult): { readonly text: string, readonly progress: number | null } | null {
  if (typeof result === 'string' || result.verdict !== 'loading') return null
  const { message = '', progress: share = null } = result
  if (message === '' && share === null) return null
  const progress = share === null || !Number.isFinite(share) ? null : Math.min(1, Math.max(0, share))
  const text = shownName(message === '' ? 'loading the model' : message)
  return { text: progress === null ? text : `${text} (${Math.floor(progress * 100)} %)`, progress }
}

export function verdictOf (result: ProbeResult): HealthVerdict | 'refused' | 'silent' {
  return typeof result === 'string' ? result : result.verdict
}

/** An answer that no model load explains. A 5xx may be the engine's way to say that it is not there yet. */
function isRefusal (result: ProbeResult): boolean {
  if (typeof result === 'string') return result === 'refused'
  return result.verdict === 'failed' && result.status >= 400 && result.status < 500
}

/** What a look found, for people. */
export function wordsOf (path: string, result: ProbeResult): string {
  if (typeof result === 'object') {
    const { status, message = '' } = result
    return `GET ${path} answered ${status}${message === '' ? '' : `: ${shownName(message)}`}`
  }
  return `GET ${path} ${result === 'refused' ? 'was refused: nothing is listening there' : result === 'silent' ? 'got no answer' : `says ${result}`}`
}

/**
 * Asks an engine whose connection broke whether it is still there: null when it is, else what is wrong. An engine that
 * died is given the time in which its runtime tells so, which says more than that it does not answer. Silence is no
 * answer: an engine may be busy with other requests.
 */
export async function lookAgain (
  probe: HealthProbe, address: EngineAddress, check: HealthCheck, clock: Clock, signal: AbortSignal
): Promise<string | null> {
  for (let look = 1; ; look++) {
    const result = await probe(address, check, signal)
    if (verdictOf(result) === 'ok' || result === 'silent') return null
    if (look === LOOKS) return `the engine ended an answer early and no longer passes its health check: ${wordsOf(check.path, result)}`
    await pause(clock, LOOK_AGAIN_MS, signal)
    signal.throwIfAborted()
  }
}

async function readJson (body: AsyncIterable<Buffer>): Promise<unknown> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > LONGEST_ANSWER_BYTES) return null
    chunks.push(chunk)
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8')) as unknown
  } catch {
    // a health answer may be plain text; only its status counts then
    return null
  }
}
