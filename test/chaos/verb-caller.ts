import { Agent, fetch as undiciFetch } from 'undici'

export interface Answered { readonly status: number, readonly code: string, readonly json: unknown, readonly requestId: string }

export type VerbCounts = Record<string, number>

export interface CallOptions {
  readonly body?: object
  readonly headers?: Readonly<Record<string, string>>
  /** Leaves before the answer. */
  readonly leaves?: boolean
}

const ANSWER_MS = 180_000
/** What is behind the gateway and may fail, as it is documented: an agent, a registry, a channel of releases. */
const ABROAD = new Set(['agent.restart_failed', 'services.install_failed', 'system.update_error'])

/** Sends requests, and holds each answer against what every one of them promises. */
export class VerbCaller {
  total = 0
  readonly #agent = new Agent({ connections: 32 })
  readonly #counts = new Map<string, VerbCounts>()
  readonly #slowest = new Map<string, { ms: number, answer: string }>()
  readonly #broken: (problem: string) => void

  constructor (broken: (problem: string) => void) {
    this.#broken = broken
  }

  async call (
    { url }: { readonly url: string }, method: string, path: string, { body, headers = {}, leaves = false }: CallOptions = {}
  ): Promise<Answered> {
    const route = `${method} ${path.replace(/\?.*/, '').replace(/t_[0-9a-f]{8}/g, '{id}').replace(/(approvals|boards)\/[^/]+/, '$1/{id}')}`
    const leaving = new AbortController()
    const from = performance.now()
    if (leaves) setTimeout(() => leaving.abort(), 20)
    try {
      const answer = await undiciFetch(`${url}${path}`, {
        method,
        dispatcher: this.#agent,
        signal: AbortSignal.any([leaving.signal, AbortSignal.timeout(ANSWER_MS)]),
        headers: { ...body === undefined ? {} : { 'content-type': 'application/json' }, ...headers },
        ...body === undefined ? {} : { body: JSON.stringify(body) }
      })
      const text = await answer.text()
      const json = (text === '' ? null : JSON.parse(text)) as { error?: { code?: string, message?: string } } | null
      const code = json?.error?.code ?? ''
      this.#count(route, `${answer.status} ${code}`.trim())
      this.#timed(route, performance.now() - from, text)
      if (answer.status >= 500 && !ABROAD.has(code)) this.#broken(`${route}: ${answer.status} ${text.slice(0, 400)}`)
      return { status: answer.status, code, json, requestId: answer.headers.get('x-request-id') ?? '' }
    } catch (error) {
      this.#count(route, leaves ? 'left' : 'no answer')
      if (!leaves) this.#broken(`${route}: no answer: ${String(error)}`)
      return { status: 0, code: '', json: null, requestId: '' }
    }
  }

  broken (problem: string): void {
    this.#broken(problem)
  }

  counts (): Readonly<Record<string, VerbCounts>> {
    return Object.fromEntries([...this.#counts].sort(([a], [b]) => a < b ? -1 : 1))
  }

  /** The longest answers, longest first. */
  slowest (): ReadonlyArray<{ readonly route: string, readonly ms: number, readonly answer: string }> {
    return [...this.#slowest].map(([route, { ms, answer }]) => ({ route, ms: Math.round(ms), answer }))
      .sort((a, b) => b.ms - a.ms).slice(0, 12)
  }

  close (): Promise<void> {
    return this.#agent.destroy()
  }

  #timed (route: string, ms: number, text: string): void {
    if (ms > (this.#slowest.get(route)?.ms ?? 0)) this.#slowest.set(route, { ms, answer: text.slice(0, 200) })
  }

  #count (route: string, outcome: string): void {
    this.total++
    const counts = this.#counts.get(route) ?? {}
    counts[outcome] = (counts[outcome] ?? 0) + 1
    this.#counts.set(route, counts)
  }
}
