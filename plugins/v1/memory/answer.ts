import { Readable } from 'node:stream'
import {
  isSvcError, messageOf, settlesWithin, within, type AdaptedAnswer, type Clock, type DispatchService, type ForwardOptions,
  type Logger, type TakenRequest
} from 'svc-gateway/plugin'
import { readDatasets, writtenDataset, type MemoryIdentity, type MemoryService, type Note } from '../../services/memory/ref.js'
import { readAll, streamEvents } from '../omni/ref.js'
import { exchangeText, questionOf, searchText, withMemories } from './conversation.js'
import type { MemoryWish } from './wish.js'

export interface ChatDeps {
  readonly clock: Clock
  readonly dispatch: DispatchService
  readonly memory: MemoryService
  readonly log: Pick<Logger, 'warn'>
  /** Is told of work that goes on behind the answer. */
  readonly behind: (work: Promise<unknown>) => void
  /** Ends that work. */
  readonly leaving: AbortSignal
}

/** A chat waits no longer for its memories. */
const RECALL_MS = 5000
/** Memories that were found are not given up for a better order of them. */
const RERANK_MS = 2000
const RETAIN_MS = 120_000
/** The end of an answer waits no longer to tell whether the exchange is kept. */
const RETAIN_TOLD_MS = 5000
const RECALL_TOKENS = 1024
const LONGEST_ANSWER_BYTES = 64 * 1024 * 1024
const LONGEST_TEXT = 64 * 1024

type StreamedAnswer = AdaptedAnswer & { readonly body: AsyncIterable<Buffer> }

interface Recalled {
  readonly notes: readonly Note[]
  readonly error: string | null
}

interface Retained {
  /** Null: not known yet. */
  readonly retain: boolean | null
  readonly retain_error?: string
}

/** One chat request with memories before it, and a memory of it behind. */
export class RememberingChat {
  readonly #deps: ChatDeps
  readonly #call: TakenRequest
  readonly #options: ForwardOptions
  readonly #wish: MemoryWish
  readonly #identity: MemoryIdentity
  readonly #question: string
  #recalled: Recalled = { notes: [], error: null }

  /** Throws `memory.unavailable`, `memory.namespace_invalid`. */
  constructor (
    deps: ChatDeps, call: TakenRequest, options: ForwardOptions, wish: MemoryWish, identity: MemoryIdentity
  ) {
    deps.memory.engine()
    if (wish.recall) readDatasets(identity, wish.bank)
    if (wish.retain) writtenDataset(identity, wish.bank)
    this.#deps = deps
    this.#call = call
    this.#options = options
    this.#wish = wish
    this.#identity = identity
    this.#question = questionOf(wish.messages)
  }

  /** The request with what is remembered; without, where nothing is, or the memory is slow or away. */
  async body (signal: AbortSignal): Promise<Buffer> {
    const { recall, bank, body, messages } = this.#wish
    if (recall && this.#question !== '') {
      const query = searchText(this.#question)
      const asked = { query, max_tokens: RECALL_TOKENS, dataset: bank, rerank: { withinMs: RERANK_MS } }
      await within(signal, RECALL_MS, async bounded => {
        try {
          const { notes } = await this.#deps.memory.notes.recall(this.#identity, asked, bounded)
          this.#recalled = { notes, error: null }
        } catch (error) {
          signal.throwIfAborted()
          const why = bounded.aborted ? `it took longer than ${RECALL_MS / 1000} s` : messageOf(error)
          this.#deps.log.warn({ request_id: this.#call.requestId, err: error }, 'a chat goes on without its memories')
          this.#recalled = { notes: [], error: isSvcError(error) ? error.message : why }
        }
      })
    }
    return Buffer.from(JSON.stringify({ ...body, messages: withMemories(messages, this.#recalled.notes) }))
  }

  async answer (signal: AbortSignal): Promise<AdaptedAnswer> {
    const body = await this.body(signal)
    const answer = await this.#engineAnswer(body, signal)
    const { status, headers: { 'content-type': type = 'application/json' } } = answer
    const headers = { 'content-type': type }
    if (status !== 200) return { status, headers, body: answer.body }
    if (type.startsWith('text/event-stream')) return { status, headers, body: this.#streamed(answer, signal) }
    const bytes = await readAll(answer, LONGEST_ANSWER_BYTES)
    const completion = completionIn(bytes.toString('utf8'))
    if (completion === null) return { status, headers, body: bytes }
    const retained = await this.#retained(textIn(completion, 'message'))
    return { status, headers, body: Buffer.from(JSON.stringify(this.#accounted(completion, retained))) }
  }

  /** Remembers the exchange. One that takes long goes on behind the answer. What one without a text was is not known yet. */
  async #retained (answer: string): Promise<Retained> {
    const { retain, bank, model } = this.#wish
    if (!retain || this.#question === '' || answer.trim() === '') return { retain: false }
    const note = { text: exchangeText(this.#question, answer), dataset: bank, tags: ['chat'], metadata: { model } }
    const { behind, clock, leaving, log, memory: { notes } } = this.#deps
    const adding = within(leaving, RETAIN_MS, signal => notes.add(this.#identity, note, signal))
    const outcome = adding.then(() => ({ retain: true }), (error: unknown) => {
      log.warn({ request_id: this.#call.requestId, err: error }, 'a chat was not remembered')
      return { retain: false, retain_error: messageOf(error) }
    })
    behind(outcome)
    return await settlesWithin(clock, RETAIN_TOLD_MS, outcome) ? await outcome : { retain: null }
  }

  /** Of the tool loop where the request asks for it and its slot can have it. */
  async #engineAnswer (body: Buffer, signal: AbortSignal): Promise<StreamedAnswer> {
    const { request, requestId } = this.#call
    const { dispatch } = this.#deps
    const taken = dispatch.taken({ body, request, requestId }, this.#options)
    if (taken === null) return await dispatch.call({ ...this.#options, body, requestId, origin: request.headers, signal })
    const { body: content, ...head } = await taken.answer(signal)
    return { ...head, body: Buffer.isBuffer(content) ? Readable.from([content]) : content }
  }

  /** Events as they come; the one that says why the answer ends tells what was used and what is kept as well. */
  async* #streamed (answer: StreamedAnswer, signal: AbortSignal): AsyncGenerator<Buffer, void, undefined> {
    let text = ''
    let isWhole = false
    let isTold = false
    for await (const { raw, data } of streamEvents(answer.body)) {
      const chunk = data === null || data === '[DONE]' ? null : completionIn(data)
      if (chunk === null) {
        isWhole ||= data === '[DONE]'
        yield raw
        continue
      }
      if (text.length < LONGEST_TEXT) text += textIn(chunk, 'delta')
      const reason = firstOf(chunk)?.finish_reason
      // LocalAI has an empty one in every chunk but the last
      if (isTold || typeof reason !== 'string' || reason === '') {
        yield raw
        continue
      }
      signal.throwIfAborted()
      isTold = true
      yield Buffer.from(`data: ${JSON.stringify(this.#accounted(chunk, await this.#retained(text)))}\n\n`)
    }
    // a stream that broke off, or whose client left, is no answer
    if (isWhole && !isTold) void this.#retained(text)
  }

  #accounted (completion: Readonly<Record<string, unknown>>, retained: Retained): object {
    const { notes, error } = this.#recalled
    const { _svc: others } = completion
    const memory = {
      recalled: notes.map(({ id, memory_id, dataset, score }) => ({ id, memory_id, dataset, score })),
      ...error === null ? {} : { error },
      ...retained
    }
    return { ...completion, _svc: { ...others as object | undefined, memory } }
  }
}

type Choice = Readonly<Record<string, unknown>>

/** The choice that is remembered. */
function firstOf ({ choices }: Readonly<Record<string, unknown>>): Choice | undefined {
  if (!Array.isArray(choices)) return undefined
  return choices.filter((choice): choice is Choice => typeof choice === 'object' && choice !== null).find(({ index = 0 }) => index === 0)
}

function textIn (completion: Readonly<Record<string, unknown>>, key: 'message' | 'delta'): string {
  const { content } = (firstOf(completion)?.[key] ?? {}) as { readonly content?: unknown }
  return typeof content === 'string' ? content : ''
}

function completionIn (text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value = JSON.parse(text) as unknown
    return typeof value === 'object' && value !== null && 'choices' in value ? value as Record<string, unknown> : null
  } catch {
    return null
  }
}
