import { Worker } from 'node:worker_threads'
import { addAbortSignal, Readable } from 'node:stream'
import { isDeepStrictEqual } from 'node:util'
import { abortable, within } from 'svc-gateway/plugin'
import type { EngineAnswer, EngineRequest, EngineStatus, MemoryEngine } from '../memory/ref.js'
import { AnswerSlots } from './answer-slots.js'
import { EmbedAhead } from './embed-ahead.js'
import { GRAPH_OFF, type Abilities, type Errand, type ErrandAnswer, type FromEngine, type ToEngine } from './messages.js'
import { PIECE_BYTES, piecesOf } from './pieces.js'

export interface EmbeddedOptions {
  /** Of the database. */
  readonly path: () => string
  /** What serves the steps that need a model, at this moment. */
  readonly abilities: () => Abilities
  /** Does what the thread cannot. Rejects where there is no answer; must honour the signal. */
  readonly run: (errand: Errand, signal: AbortSignal) => Promise<ErrandAnswer>
  readonly log: (level: 'info' | 'warn', message: string, fields: Readonly<Record<string, unknown>>) => void
  /** What the bodies of all requests may take together while they come and until they are answered; 256 MB by default. */
  readonly bodiesBytes?: number
}

/** Headers that mean something to the engine. */
const readHeaders = ['content-type', 'host'] as const
const HEAP_MB = 1024
/** Of what requests are made of: by default a thread that does little takes 16 MiB for it, and does it no sooner. */
const YOUNG_MB = 4
const STATUS_TIMEOUT_MS = 3000
/** A thread that starts on a busy machine, and a database that is brought to a newer form first. */
const OPENING_TIMEOUT_MS = 15_000

/** No request of the wire takes more: what comes beyond it is not read, and the thread refuses what it has. */
const MOST_BODY_BYTES = 100 * 1024 * 1024
const MOST_BODIES_BYTES = 256 * 1024 * 1024

interface Pending {
  /** Of its body, that came in pieces. */
  bytes: number
  readonly signal: AbortSignal
  readonly resolve: (answer: EngineAnswer) => void
  readonly reject: (error: Error) => void
}

/** A thread, from its start to its end. */
interface Thread {
  readonly worker: Worker
  readonly slots: AnswerSlots
  /** As it was last told. */
  abilities: Abilities
  readonly pending: Map<number, Pending>
  /** Of the bodies of those that are pending. */
  bytes: number
  /** Bodies of answers that come piece by piece. */
  readonly bodies: Map<number, Readable>
  readonly errands: Map<number, AbortController>
  readonly ahead: EmbedAhead
  readonly opened: Promise<void>
  readonly ended: Promise<void>
}

/** The engine in a thread of its own, which is started with the first request. */
export class EmbeddedEngine implements MemoryEngine {
  readonly name = 'embedded'
  readonly #options: EmbeddedOptions
  #thread: Thread | null = null
  #count = 0
  /** A thread that closes holds the database until it has ended. */
  #closing: Promise<void> = Promise.resolve()

  constructor (options: EmbeddedOptions) {
    this.#options = options
  }

  async request (request: EngineRequest): Promise<EngineAnswer> {
    const { signal } = request
    const thread = await this.#ready(signal)
    const id = ++this.#count
    return new Promise((resolve, reject) => {
      let takeBack: (() => void) | null = null
      const giveUp = (reason: Error): void => {
        if (!settled(thread, id)) return
        takeBack?.()
        send(thread, { kind: 'abort', id })
        // what still comes is not read
        if (request.body !== null && !Buffer.isBuffer(request.body)) request.body.destroy()
        reject(reason)
      }
      const leave = (): void => giveUp(signal.reason as Error)
      signal.addEventListener('abort', leave, { once: true })
      const over = (): void => {
        signal.removeEventListener('abort', leave)
        takeBack?.()
      }
      thread.pending.set(id, {
        bytes: 0,
        signal,
        resolve: answer => { over(); resolve(answer) },
        reject: error => { over(); reject(error) }
      })
      hand(thread, id, request, this.#options.bodiesBytes ?? MOST_BODIES_BYTES).catch(giveUp)
      takeBack = thread.ahead.begin(request)
      // it may have been left meanwhile
      if (!thread.pending.has(id)) takeBack?.()
    })
  }

  async status (): Promise<EngineStatus> {
    const { embed, rerank, chat, extracts } = this.#options.abilities()
    const steps = { vectors: embed.why, rerank: rerank.why, extraction: extracts === true ? chat.why : GRAPH_OFF }
    let late = `the memory engine has not opened its database within ${OPENING_TIMEOUT_MS / 1000} s`
    try {
      await within(null, OPENING_TIMEOUT_MS, bound => this.#ready(bound))
      late = `the memory engine did not answer within ${STATUS_TIMEOUT_MS / 1000} s`
      const [version, banks] = await within(null, STATUS_TIMEOUT_MS, bound => Promise.all(['/version', '/v1/default/banks'].map(path =>
        this.request({ method: 'GET', path, query: path.endsWith('banks') ? 'limit=1' : '', headers: {}, body: null, signal: bound })
          .then(({ body }) => JSON.parse((body as Buffer).toString('utf8')) as Record<string, unknown>))))
      return {
        reachable: true, version: version!.api_version as string, features: version!.features as Record<string, boolean>,
        banks: banks!.total as number, degraded: false, detail: null, steps
      }
    } catch (error) {
      const detail = (error as Error).name === 'TimeoutError' ? late : (error as Error).message
      return { reachable: false, version: null, features: {}, banks: null, degraded: true, detail, steps }
    }
  }

  /** What serves the steps that need a model may have changed. */
  abilitiesChanged (): void {
    if (this.#thread === null) return
    this.#thread.ahead.forget()
    send(this.#thread, { kind: 'abilities', abilities: this.#thread.abilities = this.#options.abilities() })
  }

  /** Upstreams have other models: most are of no use here, and what was tried in vain is not tried again for them. */
  modelsChanged (): void {
    if (this.#thread !== null && !isDeepStrictEqual(this.#thread.abilities, this.#options.abilities())) this.abilitiesChanged()
  }

  async close (): Promise<void> {
    const thread = this.#thread
    this.#thread = null
    if (thread !== null) {
      thread.worker.ref()
      send(thread, { kind: 'close' })
      this.#closing = thread.ended
    }
    await this.#closing
  }

  /** The thread, once its database is open. It keeps the process alive from here on. */
  async #ready (signal: AbortSignal): Promise<Thread> {
    signal.throwIfAborted()
    await abortable(this.#closing, signal)
    const thread = this.#thread ??= this.#start()
    thread.worker.ref()
    try {
      await abortable(thread.opened, signal)
      signal.throwIfAborted()
    } catch (error) {
      letGo(thread)
      throw error
    }
    return thread
  }

  #start (): Thread {
    const slots = new AnswerSlots()
    const abilities = this.#options.abilities()
    const worker = new Worker(new URL('./worker.js', import.meta.url), {
      execArgv: [], workerData: { path: this.#options.path(), abilities, slots: slots.shared },
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB, maxYoungGenerationSizeMb: YOUNG_MB }
    })
    worker.unref()
    const gate = deferred<void>()
    gate.promise.catch(() => {})
    const ended = deferred<void>()
    const thread: Thread = {
      worker, slots, abilities, pending: new Map(), bytes: 0, bodies: new Map(), errands: new Map(),
      ahead: new EmbedAhead(this.#options.run), opened: gate.promise, ended: ended.promise
    }
    const over = (error: Error): void => {
      if (this.#thread === thread) this.#thread = null
      gate.reject(error)
      for (const { reject } of thread.pending.values()) reject(error)
      for (const body of thread.bodies.values()) body.destroy(error)
      for (const control of thread.errands.values()) control.abort(error)
      thread.pending.clear()
      thread.errands.clear()
    }
    worker.on('message', (message: FromEngine) => {
      if (message.kind === 'opened') gate.resolve()
      else if (message.kind === 'broken') over(new Error(message.message))
      else this.#take(thread, message)
    })
    worker.on('error', error => {
      this.#options.log('warn', 'the thread of the memory engine failed', { error: String(error) })
      over(new Error(`its thread failed: ${(error as Error).message}`))
    })
    worker.on('exit', () => {
      over(new Error('the memory engine stopped'))
      ended.resolve()
    })
    return thread
  }

  #take (thread: Thread, message: Exclude<FromEngine, { kind: 'opened' | 'broken' }>): void {
    switch (message.kind) {
      case 'answer': {
        const { status, headers, body: bytes } = message
        const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
        return settled(thread, message.id)?.resolve({ status, headers, body })
      }
      case 'answer-lent': {
        const { id, status, headers, slot, size } = message
        const pending = settled(thread, id)
        const letGo = (): void => thread.slots.letGo(slot)
        return pending === undefined ? letGo() : pending.resolve({ status, headers, body: thread.slots.bytes(slot, size), letGo })
      }
      case 'answer-begins': {
        const { id, status, headers } = message
        const pending = settled(thread, id)
        return pending?.resolve({ status, headers, body: addAbortSignal(pending.signal, bodyOf(thread, id)) })
      }
      case 'answer-piece': return void thread.bodies.get(message.id)?.push(message.bytes)
      case 'answer-failed': return void thread.bodies.get(message.id)?.destroy(new Error(message.message))
      case 'dropped': return settled(thread, message.id)?.reject(new Error('the memory engine is closing'))
      case 'log': return this.#options.log(message.level, message.message, message.fields)
      case 'errand': return void this.#run(thread, message.id, message.errand)
      case 'errand-off': return thread.errands.get(message.id)?.abort(new Error('no longer wanted'))
      case 'closed': return
    }
  }

  async #run (thread: Thread, id: number, errand: Errand): Promise<void> {
    const control = new AbortController()
    thread.errands.set(id, control)
    try {
      const answer = await thread.ahead.run(errand, control)
      // the bytes are read into a memory of their own, unless they are few
      const { body: { buffer, byteLength } } = answer
      send(thread, { kind: 'errand-done', id, answer }, buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? [buffer] : [])
    } catch (error) {
      send(thread, { kind: 'errand-failed', id, message: (error as Error).message })
    } finally {
      thread.errands.delete(id)
    }
  }
}

/** Takes a request out of those that wait. */
function settled (thread: Thread, id: number): Pending | undefined {
  const pending = thread.pending.get(id)
  thread.pending.delete(id)
  thread.bytes -= pending?.bytes ?? 0
  letGo(thread)
  return pending
}

/** A thread that is waited for keeps the process alive, and no other does. */
function letGo (thread: Thread): void {
  if (thread.pending.size + thread.bodies.size === 0) thread.worker.unref()
}

/** The body of an answer, each piece of which is asked for when there is room for it. */
function bodyOf (thread: Thread, id: number): Readable {
  const body = new Readable({
    highWaterMark: 1,
    read: () => send(thread, { kind: 'more', id }),
    destroy: (error, done) => {
      thread.bodies.delete(id)
      if (!body.readableEnded) send(thread, { kind: 'abort', id })
      letGo(thread)
      done(error)
    }
  })
  // a reader hears of it; one that has not begun to read is told when it does
  body.on('error', () => {})
  thread.bodies.set(id, body)
  thread.worker.ref()
  return body
}

function send (thread: Thread, message: ToEngine, transfer: readonly ArrayBuffer[] = []): void {
  thread.worker.postMessage(message, transfer)
}

/** Gives a request to the thread, its body piece by piece as it comes, and no more of it than any request may have. */
async function hand (
  thread: Thread, id: number, { method, path, query, headers, body, lends = false }: EngineRequest, bodiesBytes: number
): Promise<void> {
  const read: Record<string, string> = {}
  for (const name of readHeaders) if (typeof headers[name] === 'string') read[name] = headers[name]
  const whole = (bytes: Uint8Array<ArrayBuffer> | null): void =>
    send(thread, { kind: 'request', id, bytes, method, path, query, headers: read, lends }, bytes === null ? [] : [bytes.buffer])
  // most bodies are small: one message, and no turn of the event loop
  if (body === null) return whole(null)
  if (Buffer.isBuffer(body) && body.length <= PIECE_BYTES) return whole(new Uint8Array(body))
  for await (const piece of piecesOf(body)) {
    const pending = thread.pending.get(id)
    if (pending === undefined) return
    pending.bytes += piece.length
    thread.bytes += piece.length
    if (thread.bytes > bodiesBytes) {
      send(thread, { kind: 'abort', id })
      return settled(thread, id)?.resolve(fullOf(bodiesBytes))
    }
    const isTooLarge = pending.bytes > MOST_BODY_BYTES
    send(thread, { kind: 'piece', id, bytes: piece }, [piece.buffer])
    if (isTooLarge) break
  }
  if (thread.pending.has(id)) whole(null)
}

function fullOf (bytes: number): EngineAnswer {
  const detail = `The bodies of all requests together already take up ${Math.round(bytes / 1024 / 1024)} MB; try again when some are answered`
  return { status: 503, headers: { 'content-type': 'application/json', 'retry-after': '1' }, body: Buffer.from(JSON.stringify({ detail })) }
}

interface Deferred<T> {
  readonly promise: Promise<T>
  readonly resolve: (value: T) => void
  readonly reject: (error: Error) => void
}

function deferred<T> (): Deferred<T> {
  let resolve!: (value: T) => void
  let reject!: (error: Error) => void
  const promise = new Promise<T>((done, failed) => { resolve = done; reject = failed })
  return { promise, resolve, reject }
}
