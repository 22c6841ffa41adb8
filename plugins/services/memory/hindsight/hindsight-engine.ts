import { isSvcError, messageOf } from 'svc-gateway/plugin'
import { Agent, type Dispatcher } from 'undici'
import type { EngineAnswer, EngineRequest, EngineStatus, MemoryEngine } from '../engine.js'
import { memoryError } from '../errors.js'
import { answeredHeaders, basePath, sentHeaders } from './headers.js'
import { lookAt } from './look.js'
import type { HindsightPlace } from './place.js'

export interface HindsightTimes {
  readonly connectMs: number
  /** Longest silence of the server. */
  readonly answerMs: number
  /** The same where a model writes the answer. */
  readonly reflectMs: number
  /** For each question of a look at how it is. */
  readonly lookMs: number
}

const WRITTEN_BY_MODEL = /\/(?:reflect|dry-run-refresh|dry-run-extract)$/

/** A Hindsight server over HTTP. Requests and answers pass byte for byte. */
export class HindsightEngine implements MemoryEngine {
  readonly name = 'hindsight'
  readonly #place: () => HindsightPlace
  readonly #times: HindsightTimes
  #agent: Dispatcher | null = null

  constructor (place: () => HindsightPlace, times: HindsightTimes) {
    this.#place = place
    this.#times = times
  }

  async request ({ method, path, query, headers, body, signal }: EngineRequest): Promise<EngineAnswer> {
    const { url, key } = this.#place()
    const base = new URL(url)
    const silenceMs = WRITTEN_BY_MODEL.test(path) ? this.#times.reflectMs : this.#times.answerMs
    signal.throwIfAborted()
    try {
      const answer = await this.#connections().request({
        origin: base.origin,
        path: `${basePath(base)}${path}${query === '' ? '' : `?${query}`}`,
        method: method as Dispatcher.HttpMethod,
        headers: sentHeaders(headers, key),
        body,
        signal,
        headersTimeout: silenceMs,
        bodyTimeout: silenceMs
      })
      return { status: answer.statusCode, headers: answeredHeaders(answer.headers, base), body: answer.body }
    } catch (error) {
      signal.throwIfAborted()
      // what the body itself ended with
      throw isSvcError(error) ? error : unreachable(base, error)
    }
  }

  async status (): Promise<EngineStatus> {
    return await lookAt(this, this.#place(), this.#times.lookMs)
  }

  async close (): Promise<void> {
    const agent = this.#agent
    this.#agent = null
    await agent?.destroy()
  }

  #connections (): Dispatcher {
    return this.#agent ??= new Agent({ connect: { timeout: this.#times.connectMs } })
  }
}

function unreachable (base: URL, error: unknown): Error {
  return memoryError('memory.engine_unreachable', `the Hindsight server at ${base.origin} does not answer: ${messageOf(error)}; check that it is running, and [memory] url`,
    { cause: error, details: { url: base.origin } })
}
