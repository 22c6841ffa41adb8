import { Agent, fetch as undiciFetch, FormData } from 'undici'
import type { Random } from '../kernel/slots/random.js'
import type { Ledger, Outcome } from './ledger.js'

/** As every code of the gateway's own looks. */
const CODE = /^[a-z]\w*(\.\w+)+$/

type Answer = Awaited<ReturnType<typeof undiciFetch>>

interface Kind {
  readonly name: string
  readonly path: string
  readonly models: readonly string[]
  readonly body: (model: string, random: Random) => { readonly json: object } | { readonly form: FormData }
  /** Whether the answer is whole. */
  readonly whole: (text: string) => boolean
  readonly streams?: boolean
}

const message = [{ role: 'user', content: 'hi' }]
const isDone = (text: string): boolean => text.endsWith('data: [DONE]\n\n')
const isJson = (text: string): boolean => { try { JSON.parse(text); return true } catch { return false } }
const llm = ['agent', 'agent', 'utility', 'svc/agent', 'svc/utility', 'far-away', 'nobody']

const kinds: readonly Kind[] = [
  { name: 'chat', path: '/v1/chat/completions', models: llm.filter(model => model !== 'far-away'), body: model => ({ json: { model, messages: message } }), whole: isJson },
  { name: 'chat stream', path: '/v1/chat/completions', models: llm, streams: true, body: (model, random) => ({ json: { model, messages: message, stream: true, seed: random.int(3) } }), whole: isDone },
  { name: 'completion stream', path: '/v1/completions', models: ['agent', 'utility'], streams: true, body: model => ({ json: { model, prompt: 'hi', stream: true } }), whole: isDone },
  { name: 'embeddings', path: '/v1/embeddings', models: ['embed'], body: model => ({ json: { model, input: ['a', 'b'] } }), whole: isJson },
  { name: 'rerank', path: '/v1/rerank', models: ['rerank'], body: model => ({ json: { model, query: 'a', documents: ['b'] } }), whole: isJson },
  { name: 'speech', path: '/v1/audio/speech', models: ['tts'], body: model => ({ json: { model, input: 'hello', voice: 'x' } }), whole: text => text.length === 20 * 4096 },
  { name: 'transcription', path: '/v1/audio/transcriptions', models: ['stt'], body: (model, random) => ({ form: form(model, random) }), whole: isJson },
  { name: 'image', path: '/v1/images/generations', models: ['img'], body: model => ({ json: { model, prompt: 'a storm', response_format: 'b64_json' } }), whole: isJson },
  { name: 'bad body', path: '/v1/chat/completions', models: ['agent'], body: () => ({ json: ['not an object'] }), whole: () => false }
]

function form (model: string, random: Random): FormData {
  const data = new FormData()
  const file = new File([Buffer.alloc(200_000, 1)], 'a.wav')
  if (random.chance(0.5)) data.set('model', model)
  data.set('file', file)
  if (!data.has('model')) data.set('model', model)
  return data
}

/** Clients with a connection pool of their own; half a dozen surfaces, some of them impatient. */
export class Clients {
  readonly #agent = new Agent({ connections: 128, keepAliveTimeout: 1_000 })
  readonly #baseUrl: string
  readonly #ledger: Ledger
  readonly #random: Random

  constructor (baseUrl: string, ledger: Ledger, random: Random) {
    this.#baseUrl = baseUrl
    this.#ledger = ledger
    this.#random = random
  }

  /** One request of any kind. Resolves when it has an outcome; never rejects. */
  async one (): Promise<void> {
    const random = this.#random
    const kind = random.pick(kinds)
    const controller = new AbortController()
    const impatience = random.chance(0.15) ? setTimeout(() => controller.abort(), random.int(300)) : null
    const close = this.#ledger.enter(kind.name)
    try {
      const { outcome, code } = await this.#run(kind, controller.signal)
      close(outcome, code)
    } catch (error) {
      if (controller.signal.aborted) close('left')
      else {
        this.#ledger.violation(`${kind.name}: ${String(error)} ${String((error as Error).cause ?? '')}`)
        close('broken')
      }
    } finally {
      if (impatience !== null) clearTimeout(impatience)
    }
  }

  /** A request that must be answered: the world is in order again. */
  async must (path: string, json: object): Promise<void> {
    const answer = await this.#fetch(path, { json }, AbortSignal.timeout(20_000))
    const text = await answer.text()
    if (answer.status !== 200) this.#ledger.violation(`after the storm: ${path} ${JSON.stringify(json)} answers ${answer.status} ${text.slice(0, 300)}`)
  }

  close (): Promise<void> {
    return this.#agent.destroy()
  }

  async #run (kind: Kind, signal: AbortSignal): Promise<{ outcome: Outcome, code?: string }> {
    const answer = await this.#fetch(kind.path, kind.body(this.#random.pick(kind.models), this.#random), signal)
    if (answer.headers.get('x-request-id') === null) this.#ledger.violation(`${kind.name}: no X-Request-ID on a ${answer.status}`)
    let text = ''
    try {
      for await (const chunk of answer.body!) text += Buffer.from(chunk as Uint8Array).toString('latin1')
    } catch (error) {
      if (signal.aborted || kind.streams === true || answer.status !== 200) throw error
      return { outcome: 'broken' }
    }
    if (answer.status !== 200) return { outcome: 'refused', code: this.#code(kind, answer.status, text) }
    if (kind.whole(text)) return { outcome: 'answered' }
    const last = text.trimEnd().split('\n\n').at(-1) ?? ''
    if (kind.streams === true && last.startsWith('data: {"error"')) return { outcome: 'stream-error', code: this.#code(kind, 0, last.slice(6)) }
    this.#ledger.violation(`${kind.name}: an answer that is not whole and does not say so: …${JSON.stringify(text.slice(-200))}`)
    return { outcome: 'broken' }
  }

  #code (kind: Kind, status: number, text: string): string {
    const code = isJson(text) ? (JSON.parse(text) as { error?: { code?: unknown } }).error?.code : undefined
    if (typeof code === 'string' && CODE.test(code) && status !== 500) return code
    this.#ledger.violation(`${kind.name}: ${status} ${text.slice(0, 300)}`)
    return 'none'
  }

  #fetch (path: string, body: ReturnType<Kind['body']>, signal: AbortSignal): Promise<Answer> {
    return undiciFetch(`${this.#baseUrl}${path}`, {
      method: 'POST',
      signal,
      dispatcher: this.#agent,
      ...('form' in body ? { body: body.form } : { body: JSON.stringify(body.json), headers: { 'content-type': 'application/json' } })
    })
  }
}
