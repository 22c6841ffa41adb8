import { parentPort, workerData } from 'node:worker_threads'
import { AnswerSlots, type SharedSlots } from './answer-slots.js'
import type { Core, Outside } from './core.js'
import { startBackground } from './background.js'
import type { Abilities, Errand, ErrandAnswer, FromEngine, RequestMessage, ToEngine } from './messages.js'
import { Demand } from './giving.js'
import { answerRequest } from './router.js'
import type { WireAnswer, WrittenBody } from './wire/answer.js'
import { openStore } from './store/open.js'
import { wallTime } from './store/clock.js'

/*
 * The engine's thread: it owns the database and the vectors, so that no scan and no transaction holds up the gateway.
 */

const port = parentPort!
const { path, abilities: first, slots: shared } = workerData as {
  readonly path: string
  readonly abilities: Abilities
  readonly slots: SharedSlots
}
const slots = new AnswerSlots(shared)

function send (message: FromEngine, transfer: readonly ArrayBuffer[] = []): void {
  port.postMessage(message, transfer)
}

interface Pending {
  readonly resolve: (answer: ErrandAnswer) => void
  readonly reject: (error: Error) => void
}

class Errands implements Outside {
  abilities = first
  #count = 0
  readonly #pending = new Map<number, Pending>()
  readonly #listeners = new Set<() => void>()

  onAbilities (listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  changed (abilities: Abilities): void {
    this.abilities = abilities
    for (const listener of this.#listeners) listener()
  }

  async run (errand: Errand, signal: AbortSignal): Promise<ErrandAnswer> {
    signal.throwIfAborted()
    const id = ++this.#count
    let left = (): void => {}
    try {
      return await new Promise<ErrandAnswer>((resolve, reject) => {
        this.#pending.set(id, { resolve, reject })
        left = () => {
          send({ kind: 'errand-off', id })
          reject(signal.reason as Error)
        }
        signal.addEventListener('abort', left)
        send({ kind: 'errand', id, errand })
      })
    } finally {
      this.#pending.delete(id)
      signal.removeEventListener('abort', left)
    }
  }

  done (id: number, answer: ErrandAnswer): void {
    this.#pending.get(id)?.resolve(answer)
  }

  failed (id: number, message: string): void {
    this.#pending.get(id)?.reject(new Error(message))
  }
}

const errands = new Errands()
const ends = new AbortController()
const running = new Map<number, AbortController>()

function open (): Core | null {
  try {
    return {
      store: openStore(path),
      outside: errands,
      hooks: { retaining: [], retained: [], answered: [], retainLater: null },
      now: wallTime,
      log: (level, message, fields = {}) => send({ kind: 'log', level, message, fields }),
      closing: ends.signal
    }
  } catch (error) {
    send({ kind: 'broken', message: (error as Error).message })
    return null
  }
}

async function take (core: Core, { id, bytes: last, method, path, query, headers, lends }: RequestMessage): Promise<void> {
  const control = new AbortController()
  running.set(id, control)
  try {
    const body = bodyOf(id, last)
    const answer = await answerRequest(core, { method, path, query, headers, signal: control.signal, body })
    const { status, headers: told, body: given } = answer
    if (Symbol.asyncIterator in given) return await give(core, id, answer, given, control.signal)
    if (control.signal.aborted) return send({ kind: 'dropped', id })
    const size = Buffer.isBuffer(given) ? given.length : given.size
    const slot = lends ? slots.take(size) : null
    if (slot !== null) {
      write(given, slots.bytes(slot, size))
      return send({ kind: 'answer-lent', id, status, headers: told, slot, size })
    }
    const bytes = Buffer.isBuffer(given) ? ownBytes(given) : new Uint8Array(size)
    if (!Buffer.isBuffer(given)) write(given, Buffer.from(bytes.buffer))
    send({ kind: 'answer', id, status, headers: told, body: bytes }, [bytes.buffer])
  } catch (error) {
    if (control.signal.aborted) return send({ kind: 'dropped', id })
    core.log('warn', 'a request of the memory engine failed', { method, path, error: (error as Error).stack })
    const body = new Uint8Array(Buffer.from(JSON.stringify({ detail: 'Internal server error' })))
    send({ kind: 'answer', id, status: 500, headers: { 'content-type': 'application/json' }, body }, [body.buffer])
  } finally {
    running.delete(id)
  }
}

function write (body: Buffer | WrittenBody, to: Buffer): void {
  if (Buffer.isBuffer(body)) to.set(body)
  else body.writeInto(to)
}

/** Of answers that are given piece by piece, by the numbers of their requests. */
const demands = new Map<number, Demand>()

/** Gives an answer piece by piece, as they are asked for. Never rejects. */
async function give (
  core: Core, id: number, { status, headers }: WireAnswer, body: AsyncIterable<Buffer>, signal: AbortSignal
): Promise<void> {
  const demand = new Demand()
  demands.set(id, demand)
  send({ kind: 'answer-begins', id, status, headers })
  try {
    for await (const piece of body) {
      await demand.next(signal)
      const bytes = ownBytes(piece)
      send({ kind: 'answer-piece', id, bytes }, [bytes.buffer])
    }
    send({ kind: 'answer-piece', id, bytes: null })
  } catch (error) {
    if (!signal.aborted) core.log('warn', 'an answer of the memory engine broke off', { error: (error as Error).stack })
    send({ kind: 'answer-failed', id, message: (error as Error).message })
  } finally {
    demands.delete(id)
  }
}

/** Of bodies, by the numbers of their requests. */
const pieces = new Map<number, Uint8Array[]>()
/** Those not begun, the oldest first. */
const waiting = new Map<number, RequestMessage>()
let isDue = false

/** Bytes that can be given away: a small buffer shares its memory with others. */
function ownBytes ({ buffer, byteOffset, byteLength }: Buffer): Uint8Array<ArrayBuffer> {
  return buffer instanceof ArrayBuffer && buffer.byteLength === byteLength
    ? new Uint8Array(buffer) : new Uint8Array(new Uint8Array(buffer, byteOffset, byteLength))
}

/** What came of a request's body; it is let go. */
function bodyOf (id: number, last: Uint8Array | null): Buffer {
  const before = pieces.get(id)
  pieces.delete(id)
  const all = [...before ?? [], ...last === null ? [] : [last]]
  return all.length === 1 ? Buffer.from(all[0]!.buffer, all[0]!.byteOffset, all[0]!.byteLength) : Buffer.concat(all)
}

/** Begins one request at a turn, and reads messages between them: what its client left is not begun. */
function later (core: Core): void {
  if (isDue || waiting.size === 0) return
  isDue = true
  setImmediate(() => {
    isDue = false
    begin(core)
    later(core)
  })
}

function begin (core: Core): void {
  const [message] = waiting.values()
  if (message === undefined) return
  waiting.delete(message.id)
  void take(core, message)
}

function close (core: Core): void {
  while (waiting.size > 0) begin(core)
  ends.abort(new Error('the memory engine is closing'))
  for (const control of running.values()) control.abort(ends.signal.reason)
  core.store.close()
  send({ kind: 'closed' })
  port.close()
}

const core = open()
if (core !== null) {
  startBackground(core)
  send({ kind: 'opened' })
  port.on('message', (message: ToEngine) => {
    switch (message.kind) {
      case 'piece': return void (pieces.get(message.id)?.push(message.bytes) ?? pieces.set(message.id, [message.bytes]))
      case 'request':
        waiting.set(message.id, message)
        return later(core)
      case 'more': return demands.get(message.id)?.more()
      case 'abort':
        waiting.delete(message.id)
        pieces.delete(message.id)
        return running.get(message.id)?.abort(new Error('the client left'))
      case 'abilities': return errands.changed(message.abilities)
      case 'errand-done': return errands.done(message.id, message.answer)
      case 'errand-failed': return errands.failed(message.id, message.message)
      case 'close': return close(core)
    }
  })
}
