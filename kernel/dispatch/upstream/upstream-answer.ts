import { svcError, type SvcError } from '../../contract/index.js'
import type { AnswerSink } from '../answer/answer-sink.js'

/** Shorter words stand in texts by chance. */
const SHORTEST_KEY = 6
const EMPTY: Buffer = Buffer.alloc(0)

/** A key in the forms in which an upstream may repeat it. */
export interface HiddenKey {
  readonly forms: readonly Buffer[]
  /** Bytes of the longest form. */
  readonly longest: number
}

/** @param key empty for none */
export function hiddenKey (key: string): HiddenKey {
  const texts = key.length < SHORTEST_KEY ? [] : [key, encodeURIComponent(key), JSON.stringify(key).slice(1, -1)]
  const forms = [...new Set(texts)].map(text => Buffer.from(text))
  return { forms, longest: Math.max(0, ...forms.map(({ length }) => length)) }
}

/**
 * Stands behind a call to an upstream and keeps from the client what is the gateway's own business: where the upstream would
 * send it (a redirect is an error), and the key, which some upstreams repeat when they refuse it.
 */
export class UpstreamAnswer implements AnswerSink {
  readonly #sink: AnswerSink
  readonly #name: string
  readonly #key: HiddenKey
  #mode: 'pass' | 'scrub' | 'over' = 'pass'
  /** The end of what came: a key may begin in it. */
  #tail: Buffer = EMPTY

  /** @param key that the call carries */
  constructor (sink: AnswerSink, name: string, key: HiddenKey) {
    this.#sink = sink
    this.#name = name
    this.#key = key
  }

  head (status: number, rawHeaders: readonly Buffer[] | readonly string[]): void {
    if (status >= 300 && status < 400) {
      this.#mode = 'over'
      return this.#sink.fail(redirected(this.#name, status))
    }
    if (status < 400 || this.#key.forms.length === 0) return this.#sink.head(status, rawHeaders)
    this.#mode = 'scrub'
    this.#sink.head(status, rawHeaders.map(each => this.#scrubbed(Buffer.from(each.toString('latin1'), 'latin1')).toString('latin1')))
  }

  data (chunk: Buffer): boolean {
    if (this.#mode === 'over') return true
    if (this.#mode === 'pass') return this.#sink.data(chunk)
    const text = this.#scrubbed(Buffer.concat([this.#tail, chunk]))
    const ready = Math.max(0, text.length - this.#key.longest + 1)
    this.#tail = text.subarray(ready)
    return ready === 0 ? true : this.#sink.data(text.subarray(0, ready))
  }

  end (): void {
    if (this.#mode === 'over') return
    if (this.#tail.length > 0) this.#sink.data(this.#tail)
    this.#sink.end()
  }

  fail (error: SvcError): void {
    if (this.#mode !== 'over') this.#sink.fail(error)
  }

  onDrain (resume: () => void): void {
    this.#sink.onDrain(resume)
  }

  /** As many stars as the key has bytes, so that the length that was promised stays true. */
  #scrubbed (text: Buffer): Buffer {
    for (const form of this.#key.forms) {
      for (let at = text.indexOf(form); at !== -1; at = text.indexOf(form, at + form.length)) text.fill('*', at, at + form.length)
    }
    return text
  }
}

function redirected (upstream: string, status: number): SvcError {
  return svcError('dispatch.upstream_redirected',
    `upstream '${upstream}' answered with a redirect (${status}), which is never followed; correct its URL with \`svc upstream edit ${upstream} --address <url>\``,
    { details: { upstream, status } })
}
