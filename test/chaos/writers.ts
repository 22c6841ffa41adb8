import { Agent, fetch as undiciFetch } from 'undici'
import type { Random } from '../kernel/slots/random.js'
import type { Pulls } from './pulled.js'
import type { Truth } from './truth.js'
import { type Value } from './truth.js'

/** An answer, or none: the gateway died, or the connection did. */
export interface Answer { readonly status: number, readonly code: string, readonly requestId: string, readonly json: unknown }

export interface WriteCounts { acknowledged: number, refused: number, failed: number, unanswered: number }

/** A cascade that is being put together may be found in any state. */
export const ANYTHING = '*'
const ANSWER_MS = 20_000

/** What a gateway at this address says. */
export class Caller {
  readonly #agent = new Agent({ connections: 16 })
  url = ''

  async call (method: string, path: string, body?: object): Promise<Answer | null> {
    try {
      const answer = await undiciFetch(`${this.url}${path}`, {
        method,
        dispatcher: this.#agent,
        signal: AbortSignal.timeout(ANSWER_MS),
        ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } })
      })
      const text = await answer.text()
      const json = (text === '' ? null : JSON.parse(text)) as { error?: { code?: string } } | null
      return { status: answer.status, code: json?.error?.code ?? '', requestId: answer.headers.get('x-request-id') ?? '', json }
    } catch {
      return null
    }
  }

  /** Rejects when it does not answer with 200. */
  async get (path: string): Promise<unknown> {
    const answer = await this.call('GET', path)
    if (answer?.status !== 200) throw new Error(`GET ${path}: ${answer === null ? 'no answer' : `${answer.status} ${answer.code}`}`)
    return answer.json
  }

  close (): Promise<void> {
    return this.#agent.destroy()
  }
}

export interface WriterDeps {
  readonly caller: Caller
  readonly truth: Truth
  readonly pulls: Pulls
  readonly random: Random
  /** A file that a model row may name. */
  readonly file: string
  readonly counts: Map<string, WriteCounts>
  readonly told: (problem: string) => void
  /** An acknowledged write whose audit row must be there. */
  readonly audited: (requestId: string) => void
}

/** Somebody who writes one thing after the other, to things of their own. */
export class Writer {
  readonly #deps: WriterDeps
  readonly #n: number
  #value = 100

  constructor (n: number, deps: WriterDeps) {
    this.#n = n
    this.#deps = deps
  }

  async one (): Promise<void> {
    const { random } = this.#deps
    this.#value = 100 + (this.#value + 1) % 900
    const kinds = [this.#slot, this.#slot, this.#model, this.#secret, this.#upstream, this.#profile, this.#cascade, this.#pull]
    await random.pick(this.#n === 0 ? [...kinds, this.#setting, this.#setting] : kinds).call(this)
  }

  #slot (): Promise<unknown> {
    const name = `s${this.#n}`
    const body = { idle_timeout_s: this.#value }
    return this.#threeWays('slot', name, {
      create: ['POST', '/api/slots', { name, device: 'cpu', ...body }],
      change: ['PUT', `/api/slots/${name}/config`, body],
      remove: ['DELETE', `/api/slots/${name}?force=true`]
    })
  }

  #model (): Promise<unknown> {
    const id = `m${this.#n}`
    return this.#threeWays('model', id, {
      create: ['POST', '/api/models', { id, path: this.#deps.file, name: String(this.#value) }],
      remove: ['DELETE', `/api/models/${id}`]
    })
  }

  #upstream (): Promise<unknown> {
    const name = `u${this.#n}`
    const body = { url: 'http://127.0.0.1:9/v1', auth_style: 'none', timeout_seconds: this.#value }
    return this.#threeWays('upstream', name, {
      create: ['POST', '/api/upstreams', { name, ...body }],
      remove: ['DELETE', `/api/upstreams/${name}`]
    })
  }

  #profile (): Promise<unknown> {
    const name = `p${this.#n}`
    return this.#threeWays('profile', name, {
      create: ['POST', '/api/profiles', { name, image: 'x:1', device_class: 'cpu', intent: String(this.#value) }],
      remove: ['DELETE', `/api/profiles/${name}`]
    })
  }

  #secret (): Promise<unknown> {
    const name = `KEY_${this.#n}`
    const isSet = this.#deps.truth.get(`secret ${name}`) !== null
    return isSet ? this.#write('secret', name, null, 'DELETE', `/api/secrets/${name}`) : this.#write('secret', name, 'set', 'PUT', `/api/secrets/${name}`, { value: 'x' })
  }

  #setting (): Promise<unknown> {
    return this.#write('setting', 'drain', String(this.#value), 'PUT', '/api/settings', { slots: { drain_timeout_s: this.#value } })
  }

  /** A model that two slots use goes, and with it what refers to it. */
  async #cascade (): Promise<void> {
    const { caller, truth, file } = this.#deps
    const [id, key] = [`c${this.#n}`, `cascade c${this.#n}`]
    if (truth.get(key) === 'all') {
      await this.#write('cascade', id, 'none', 'DELETE', `/api/models/${id}?force_cascade=true`)
      return
    }
    truth.sent(key, ANYTHING)
    const made = await caller.call('POST', '/api/models', { id, path: file })
    if (made === null || (made.status !== 200 && made.status !== 201 && made.status !== 409)) return
    for (const name of [`x${this.#n}`, `y${this.#n}`]) {
      const model = { default: id }
      const created = await caller.call('POST', '/api/slots', { name, device: 'cpu', model })
      if (created?.status === 201) continue
      const changed = await caller.call('PUT', `/api/slots/${name}/config`, { model })
      if (changed?.status !== 200) return
    }
    truth.acknowledged(key, 'all')
  }

  #pull (): Promise<void> {
    return this.#deps.pulls.one(this.#n)
  }

  #threeWays (
    kind: string, name: string,
    ways: Readonly<Record<'create' | 'remove', readonly [string, string, object?]> & Partial<Record<'change', readonly [string, string, object?]>>>
  ): Promise<unknown> {
    const isThere = this.#deps.truth.get(`${kind} ${name}`) !== null
    const way = !isThere ? ways.create : ways.change !== undefined && this.#deps.random.chance(0.8) ? ways.change : ways.remove
    return this.#write(kind, name, way === ways.remove ? null : String(this.#value), ...way)
  }

  async #write (kind: string, name: string, value: Value, method: string, path: string, body?: object): Promise<void> {
    const { truth, caller, counts, told, audited } = this.#deps
    const key = `${kind} ${name}`
    const count = counts.get(kind) ?? { acknowledged: 0, refused: 0, failed: 0, unanswered: 0 }
    counts.set(kind, count)
    truth.sent(key, value)
    const answer = await caller.call(method, path, body)
    if (answer === null) {
      count.unanswered++
    } else if (answer.status < 300) {
      count.acknowledged++
      truth.acknowledged(key, value)
      audited(answer.requestId)
    } else if (answer.status < 500) {
      count.refused++
      truth.refused(key)
    } else {
      count.failed++
      // one gateway and no other program: nobody else can have the lock
      if (['config.locked', 'system.internal'].includes(answer.code)) told(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.json).slice(0, 300)}`)
    }
  }
}

/** Names of what writers make; the rest is of the run itself. */
const OWN = /^(?:[smup]\d+|KEY_\d+)$/

type Rows = ReadonlyArray<Readonly<Record<string, unknown>>>

/** Everything that writers may have written, as the gateway tells it now. */
export async function readAll (caller: Caller): Promise<Map<string, Value>> {
  const found = new Map<string, Value>()
  const note = (kind: string, rows: Rows, name: string, value: (row: Rows[number]) => unknown): void => {
    for (const row of rows) if (OWN.test(String(row[name]))) found.set(`${kind} ${String(row[name])}`, String(value(row)))
  }
  const slots = await caller.get('/api/slots') as Rows
  const { models } = await caller.get('/api/models') as { models: Rows }
  note('slot', slots.filter(({ kind }) => kind === 'local'), 'name', row => row.idle_timeout_s)
  note('model', models, 'id', row => row.name)
  note('upstream', await caller.get('/api/upstreams') as Rows, 'name', row => row.timeout_seconds)
  note('profile', await caller.get('/api/profiles') as Rows, 'name', row => row.intent)
  note('secret', (await caller.get('/api/secrets') as { secrets: Rows }).secrets.filter(({ set }) => set === true), 'name', () => 'set')
  const { slots: { drain_timeout_s: drain } } = await caller.get('/api/settings') as { slots: { drain_timeout_s: number } }
  found.set('setting drain', String(drain))
  for (const row of slots) {
    const n = /^x(\d+)$/.exec(String(row.name))?.[1]
    if (n === undefined) continue
    const users = slots.filter(({ name }) => name === `x${n}` || name === `y${n}`)
    const parts = [models.some(({ id }) => id === `c${n}`), ...users.map(user => user.model_default === `c${n}`)]
    found.set(`cascade c${n}`, parts.every(Boolean) ? 'all' : parts.some(Boolean) ? 'half' : 'none')
  }
  return found
}
