import {
  isSvcError, translated, type AdaptedAnswer, type CallAnswer, type ChunkTranslator, type DispatchService, type Otherwise,
  type OtherwiseRequest, type SvcError
} from 'svc-gateway/plugin'
import { readAll } from '../omni/ref.js'
import { ChatReader, type ChatListener } from './chat-reader.js'
import { withOneCall } from './one-call.js'
import { warningHeader, WARNING_HEADER } from './warning-header.js'

const LONGEST_ANSWER_BYTES = 64 * 1024 * 1024
const SSE = 'text/event-stream'
const EMPTY = Buffer.alloc(0)

/** Writes a chat answer in another wire format. */
export interface AnswerWriter extends ChatListener {
  /** The events that are written and not taken yet; null for none, and for an answer that is not streamed. */
  take (): Buffer | null
  /** The whole answer, once it has ended. */
  whole (): object
  /** Ends the stream with a failure in the format's own way; false where the dialect's error event says it. */
  fail (error: SvcError): boolean
}

/** A request in the words of chat completions, and the way back. */
export interface ChatCall {
  readonly request: Pick<OtherwiseRequest, 'requestId' | 'headers'>
  /** The JSON of one where it is made already. */
  readonly body: object | Buffer
  /** Whether the client waits for a stream. */
  readonly stream: boolean
  /** Makes what writes the answer, while the engine is at work. */
  readonly writer: () => AnswerWriter
  /** Content type of a stream, where it is no event stream. */
  readonly streamType?: string
  /** For `body` of a completion of the older kind: on which surface, `fim` with a `suffix`. */
  readonly completion?: 'completions' | 'fim' | undefined
  /** What was left out of the request and the client should know, for people. */
  readonly warnings: readonly string[]
  /** For an upstream that does not speak chat completions either. */
  readonly otherwise?: Otherwise | undefined
  readonly signal: AbortSignal
}

/** Asks for a chat completion and answers in the format of the writer. A refusal of the engine comes back as it is. */
export async function askChat (dispatch: DispatchService, call: ChatCall): Promise<AdaptedAnswer> {
  const { request: { requestId, headers: origin }, body, stream, completion, otherwise, signal } = call
  const asked = dispatch.call({
    surface: completion ?? 'chat',
    path: completion === undefined ? '/chat/completions' : '/completions',
    body: Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body)),
    requestId,
    origin,
    signal,
    otherwise
  })
  // of a writer that cannot be made the failure is told, and the call given up with the signal
  asked.catch(() => {})
  const writer = call.writer()
  const reader = new ChatReader(writer)
  const told = await asked
  const { status } = told
  if (status < 200 || status > 299) return { status, headers: refusalHeaders(told.headers), body: told.body }
  const answer = 'parallel_tool_calls' in body && body.parallel_tool_calls === false ? withOneCall(told) : told
  const headers = { 'content-type': stream ? call.streamType ?? SSE : 'application/json', ...warningHeader([...call.warnings, ...toldBefore(told)]) }
  const isStreamed = answer.headers['content-type']?.startsWith(SSE) === true
  if (stream && isStreamed) return { status: 200, headers, body: translated(answer.body, new EventTranslator(reader, writer)) }
  const text = (await readAll(answer, LONGEST_ANSWER_BYTES)).toString('utf8')
  if (isStreamed) {
    reader.push(Buffer.from(`${text}\n\n`))
    reader.end()
  } else {
    reader.whole(text)
  }
  return { status: 200, headers, body: stream ? writer.take() ?? EMPTY : Buffer.from(JSON.stringify(writer.whole())) }
}

/** What the way to an upstream that speaks another API still left out. */
function toldBefore ({ headers }: CallAnswer): readonly string[] {
  const { [WARNING_HEADER]: told } = headers
  return told === undefined ? [] : [told]
}

/**
 * As many events as a chunk of the engine completes are one chunk for the client, but for the first piece of the answer, which
 * waits for no other; nothing else is held.
 */
class EventTranslator implements ChunkTranslator {
  readonly #reader: ChatReader
  readonly #writer: AnswerWriter
  #early: (piece: Buffer) => void = () => {}

  constructor (reader: ChatReader, writer: AnswerWriter) {
    this.#reader = reader
    this.#writer = writer
  }

  chunk (bytes: Buffer, early: (piece: Buffer) => void): Buffer | null {
    this.#early = early
    this.#reader.push(bytes, this.#handOn)
    return this.#writer.take()
  }

  readonly #handOn = (): void => {
    const piece = this.#writer.take()
    if (piece !== null) this.#early(piece)
  }

  end (): Buffer | null {
    this.#reader.end()
    return this.#writer.take()
  }

  /** A connection that breaks behind the end of the answer takes nothing from it. */
  failed (error: unknown): { readonly last: Buffer | null, readonly isTold: boolean } {
    const isTold = this.#reader.isDone || (isSvcError(error) && this.#writer.fail(error))
    return { isTold, last: this.#writer.take() }
  }
}

/** What a client needs of the headers of a refusal: its type, and whether and when to ask again. */
export function refusalHeaders (headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => ofRefusals.has(name)))
}

const ofRefusals: ReadonlySet<string> = new Set(['content-type', 'retry-after', 'retry-after-ms', 'x-should-retry'])
