import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { hear, readForm, textOf } from '../../stt-engine/transcript.js'
import type { Arguments } from './arguments.js'
import { orders, whileOrdered } from './orders.js'
import { ASR, EMBED, fetchModel, isInstalled, isKnown, resolveTag, tags } from './store.js'
import { replyTo, usageOf, vectorOf } from './thinking.js'

/**
 * FastFlowLM's server, as its sources of 1.0 have it (src/server/server.cpp, rest_handler.cpp): it listens before it
 * serves, works on one NPU request at a time and queues others, reports most failures with status 200, and closes each
 * connection without having said so. Chat requests for another model make it load that one.
 */
const npuPaths = ['/api/generate', '/api/chat', '/v1/chat/completions', '/v1/audio/transcriptions', '/v1/embeddings']

interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly body: Buffer
}

type Body = Readonly<Record<string, unknown>>

/** What a test sets and reads at `/__test__`. */
export interface FakeState {
  readonly pid: number
  readonly argv: readonly string[]
  /** Path and model of each request that reached the NPU. */
  seen: string[]
  /** Loads of a chat model. */
  loads: string[]
  /** Requests that found another one at work on the context that they share. */
  overlaps: number
  cancelled: number
  pieceMs: number
  failLoads: boolean
  /** The chat model that is there. */
  loaded: string | null
}

export class FlmServer {
  readonly #args: Arguments
  readonly state: FakeState
  readonly #http: Server
  readonly #queue: Array<() => void> = []
  #locked = false
  #chatting = 0
  #sockets = 0
  #served!: () => void
  readonly #serving = new Promise<void>(resolve => { this.#served = resolve })

  constructor (args: Arguments, argv: readonly string[]) {
    this.#args = args
    this.state = {
      pid: process.pid, argv, seen: [], loads: [], overlaps: 0, cancelled: 0, pieceMs: 1, failLoads: false, loaded: null
    }
    this.#http = createServer((request, response) => { void this.#receive(request, response) })
    this.#http.on('connection', socket => {
      if (++this.#sockets > args.sockets) socket.destroy()
      socket.on('close', () => this.#sockets--)
    })
  }

  /** Listens at once; whoever connects meanwhile hears nothing. */
  async start (loadMs: number): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#http.once('error', reject)
      this.#http.listen(this.#args.port, this.#args.host, resolve)
    })
    for (const tag of [...this.#args.asr ? [ASR] : [], ...this.#args.embed ? [EMBED] : []]) if (!isInstalled(tag)) fetchModel(tag)
    await pause(loadMs)
    await whileOrdered(() => /^hold-load$/m.test(orders()))
    if (this.#args.tag !== null) this.#ensure(this.#args.tag)
    this.#served()
  }

  async #receive (request: IncomingMessage, response: ServerResponse): Promise<void> {
    // it says that the connection stays open, and then shuts it
    response.removeHeader('connection')
    response.on('finish', () => request.socket.end())
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    await this.#serving
    const exchange = { request, response, body: Buffer.concat(chunks) }
    const handler = this.#routes[`${request.method} ${request.url}`]
    if (handler === undefined) return send(response, 404, { error: 'Not Found' }, 'multipart/form-data')
    if (!npuPaths.includes(request.url!)) return await this.#run(handler, exchange)
    if (this.#locked) {
      if (this.#queue.length >= this.#args.queue) {
        return send(response, 503, { error: `NPU is in use and request queue is full (limit: ${this.#args.queue}). Please try again later.` })
      }
      await new Promise<void>(resolve => this.#queue.push(resolve))
    }
    this.#locked = true
    try {
      await whileOrdered(() => /^hold-npu$/m.test(orders()))
      // a driver or firmware that does not work shows only here; the wording is ours
      if (/^broken-npu$/m.test(orders())) return send(response, 200, { error: 'NPU command failed' })
      await this.#run(handler, exchange)
    } finally {
      this.#locked = false
      this.#queue.shift()?.()
    }
  }

  async #run (handler: (exchange: Exchange) => void | Promise<void>, exchange: Exchange): Promise<void> {
    try {
      await handler(exchange)
    } catch (error) {
      send(exchange.response, 500, { error: `Handler exception: ${(error as Error).message}` })
    }
  }

  readonly #routes: Readonly<Record<string, (exchange: Exchange) => void | Promise<void>>> = {
    'GET /v1/models': ({ response }) => send(response, 200, {
      object: 'list',
      data: tags.filter(tag => tag !== ASR && tag !== EMBED).map(id => ({ id, object: 'model', created: Math.floor(Date.now() / 1000), owned_by: 'FastFlowLM' }))
    }),
    'GET /api/version': ({ response }) => send(response, 200, { version: '1.0.6' }),
    'GET /api/npu/status': ({ response }) => send(response, 200, {
      npu_available: !this.#locked, active_requests: this.#locked ? 1 : 0, message: this.#locked ? 'NPU is currently in use' : 'NPU is available'
    }),
    'POST /v1/chat/completions': exchange => this.#chat(exchange),
    'POST /v1/completions': exchange => this.#complete(exchange),
    'POST /v1/embeddings': exchange => this.#embed(exchange),
    'POST /v1/audio/transcriptions': exchange => this.#transcribe(exchange),
    'POST /__test__': ({ response, body }) => {
      Object.assign(this.state, JSON.parse(body.toString('utf8')))
      send(response, 200, this.state)
    }
  }

  /** Loads a chat model unless it is the one there; an unknown tag means the usual one. */
  #ensure (asked: string): boolean {
    const tag = resolveTag(asked)
    if (this.state.loaded === tag) return true
    if (this.state.failLoads) return false
    if (!isInstalled(tag)) fetchModel(tag)
    this.state.loaded = tag
    this.state.loads.push(tag)
    return true
  }

  async #chat (exchange: Exchange): Promise<void> {
    const body = JSON.parse(exchange.body.toString('utf8')) as Body
    if (!Array.isArray(body.messages)) {
      return send(exchange.response, 200, { error: { message: '[json.exception.type_error.302] type must be array, but is null', type: 'server_error', code: 500 } })
    }
    const pieces = replyTo(body.messages as never)
    const model = String(body.model ?? this.state.loaded)
    this.state.seen.push(`chat ${model}`)
    if (!this.#ensure(model)) return send(exchange.response, 200, { error: `Failed to load ${model} model!` })
    const length = this.#args.contextLength > 0 ? this.#args.contextLength : 8192
    if (pieces.length > length) return send(exchange.response, 400, { error: { message: 'Max length reached!', type: 'model_error', code: 400 } })
    const usage = usageOf(pieces.length, pieces.length, length)
    const created = Math.floor(Date.now() / 1000)
    await this.#alone(exchange, async () => {
      if (body.stream !== true) {
        if (!await this.#say(exchange, pieces, () => {})) return
        return send(exchange.response, 200, {
          id: 'fastflowlm-chat-completion',
          object: 'chat.completion',
          created,
          model,
          choices: [{ index: 0, message: { role: 'assistant', content: pieces.join('') }, logprobs: null, finish_reason: 'stop' }],
          usage,
          service_tier: 'default'
        })
      }
      const id = 'chatcmpl-0123456789abcdef01234567'
      const chunk = (delta: object, finish: string | null, more = {}): string =>
        `data: ${JSON.stringify({ id, object: 'chat.completion.chunk', created, model, choices: [{ index: 0, delta, finish_reason: finish }], ...more })}\n\n`
      exchange.response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache', 'connection': 'keep-alive' })
      const all = await this.#say(exchange, pieces, content => exchange.response.write(chunk({ role: 'assistant', content }, null)))
      if (all) exchange.response.end(`${chunk({ content: null }, 'stop', { usage })}data: [DONE]\n\n`)
    })
  }

  async #complete (exchange: Exchange): Promise<void> {
    const { prompt, model = this.state.loaded } = JSON.parse(exchange.body.toString('utf8')) as Body
    this.state.seen.push(`completion ${String(model)}`)
    if (!isKnown(String(model))) return send(exchange.response, 200, { error: { message: `Model ${String(model)} is not supported.`, type: 'server_error', code: 500 } })
    this.#ensure(String(model))
    const pieces = replyTo([{ role: 'user', content: prompt }])
    await this.#alone(exchange, async () => {
      if (!await this.#say(exchange, pieces, () => {})) return
      send(exchange.response, 200, {
        id: 'fastflowlm-chat-completion',
        object: 'text_completion',
        created: Math.floor(Date.now() / 1000),
        model,
        choices: [{ text: pieces.join(''), index: 0, logprobs: null, finish_reason: 'stop' }],
        usage: { prompt_tokens: 1, completion_tokens: pieces.length, total_tokens: pieces.length + 1 }
      })
    })
  }

  /** Legacy completions take no lock of the NPU: two requests at once spoil the one context there is. */
  async #alone (_exchange: Exchange, work: () => Promise<void>): Promise<void> {
    if (this.#chatting > 0) this.state.overlaps++
    this.#chatting++
    try {
      await work()
    } finally {
      this.#chatting--
    }
  }

  /** False when the client left: it notices, and stops. */
  async #say ({ request }: Exchange, pieces: readonly string[], tell: (piece: string) => void): Promise<boolean> {
    for (const piece of pieces) {
      await pause(this.state.pieceMs)
      if (request.socket.destroyed) {
        this.state.cancelled++
        return false
      }
      tell(piece)
    }
    return true
  }

  #embed ({ response, body }: Exchange): void {
    const { model, input } = JSON.parse(body.toString('utf8')) as Body
    this.state.seen.push(`embed ${String(model)}`)
    const texts: readonly unknown[] = Array.isArray(input) ? input : [input]
    const wrong = texts.find(text => typeof text !== 'string')
    if (wrong !== undefined) return send(response, 200, { error: `[json.exception.type_error.302] type must be string, but is ${typeof wrong}` })
    // without an embedding model it has nothing to say, and says so
    if (!this.#args.embed) return send(response, 200, null)
    send(response, 200, {
      object: 'list',
      data: texts.map((text, index) => ({ object: 'embedding', embedding: vectorOf(text as string), index })),
      model,
      usage: { prompt_tokens: 0, total_tokens: 0 }
    })
  }

  async #transcribe ({ request, response, body }: Exchange): Promise<void> {
    const form = await readForm(body, request.headers['content-type'] ?? '')
    const model = form.text('model') ?? ''
    this.state.seen.push(`hear ${model}`)
    if (!this.#args.asr) return send(response, 200, { error: { code: 503, type: 'service_unavailable', message: 'ASR model is not available' } })
    const heard = form.file === null ? null : hear(form.file)
    if (heard === null) return send(response, 200, { error: { message: 'Failed to open audio stream', type: 'server_error', code: 500 } })
    send(response, 200, { model, text: textOf(heard) })
  }
}

function send (response: ServerResponse, status: number, body: unknown, type = 'application/json'): void {
  if (response.destroyed) return
  const bytes = Buffer.from(JSON.stringify(body))
  response.writeHead(status, { 'content-type': type, 'content-length': bytes.length, 'access-control-allow-origin': '*' })
  response.end(bytes)
}
