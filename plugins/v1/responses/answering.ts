import {
  messageOf, sse, type BodyEdits, type Clock, type ConfigService, type DispatchService, type ForwardOptions, type handled,
  type JsonBody, type Logger, type NamedSlotConfig, type Otherwise, type RouteCall, type SlotService,
  type SseReply
} from 'svc-gateway/plugin'
import { bodyObject, malformed, textOr, type Json } from '../over-chat/ref.js'
import { echoOf, NOT_KEPT, type Standing } from './chat-request.js'
import { compactionOverChat, mayHaveSummaries, withSummaries } from './compaction.js'
import { responsesDialect } from './dialect.js'
import { newId } from './ids.js'
import { inputTokens } from './input-tokens.js'
import { continued, hasToDo, mayContinue, type Continued } from './kept/continued.js'
import { inputItems } from './kept/items.js'
import { Keeper, type OwnPart } from './kept/keeper.js'
import type { KeptFile } from './kept/kept-file.js'
import type { KeptResponses } from './kept/kept-responses.js'
import { isPrivate, MOST_KEPT_BYTES } from './kept/may-keep.js'
import { told, type Kept } from './kept/told.js'
import { responsesOverChat } from './over-chat.js'

type Call = RouteCall<unknown, unknown, Buffer>

export interface AnsweringDeps {
  readonly clock: Clock
  readonly config: ConfigService
  readonly dispatch: DispatchService
  readonly log: Logger
  readonly slots: Pick<SlotService, 'client'>
  /** Null where nothing is kept. */
  readonly file: KeptFile | null
  readonly open: () => Promise<Kept>
}

/** Answers requests for a response: what is kept goes before them, and what is made of them is kept. */
export class Answering {
  readonly #deps: AnsweringDeps
  readonly #overChat: (standing: Standing) => Otherwise
  readonly #counted: Otherwise
  readonly #compacted: Otherwise

  constructor (deps: AnsweringDeps) {
    this.#deps = deps
    this.#overChat = responsesOverChat(deps.dispatch, deps.clock)
    this.#counted = inputTokens(deps.slots)
    this.#compacted = compactionOverChat(deps.dispatch, deps.clock)
  }

  /** How many tokens a request for a response has, with all that it goes on from. */
  async count (call: Call): Promise<typeof handled> {
    return this.#deps.dispatch.forward(await this.#whole(call), {
      surface: 'input-tokens', path: '/responses/input_tokens', dialect: responsesDialect, otherwise: this.#counted
    })
  }

  /** A conversation in short. */
  async compact (call: Call): Promise<typeof handled> {
    return this.#deps.dispatch.forward(await this.#whole(call), {
      surface: 'compact', path: '/responses/compact', dialect: responsesDialect, otherwise: this.#compacted
    })
  }

  answer (sent: Call): typeof handled | Promise<unknown> {
    const call = summariesTold(sent)
    const { file } = this.#deps
    if (file === null) return this.#forward(call, NOT_KEPT)
    const mayStand = mayContinue(call.body)
    if (!mayStand && !keepsFrom(call)) return this.#forward(call, NOT_KEPT)
    const { opened } = file
    if (!mayStand && opened !== null) return this.#kept(call, opened)
    return this.#opened(call, mayStand)
  }

  async #opened (call: Call, mayStand: boolean): Promise<unknown> {
    const asked = mayStand ? bodyObject(call.body) : {}
    if (!hasToDo(asked)) return this.#alone(call)
    const kept = await this.#deps.open()
    const next = this.#continued(asked, kept)
    const keeps = keepsFrom(call)
    if (!keeps && next.own.conversation !== null) {
      throw malformed('conversation', `is not available to private requests, nor to bodies of more than ${MOST_KEPT_BYTES} bytes: send the conversation as input`)
    }
    if (asked.background === true) return await this.#inBackground(call, asked, next, kept)
    const own = keeps ? next.own : { ...next.own, isKept: false }
    return this.#kept(next.body === null ? call : withBody(call, next.body), kept.store, own)
  }

  /** A request with all that it goes on from. */
  async #whole (sent: Call): Promise<Call> {
    const call = summariesTold(sent)
    if (this.#deps.file === null || !mayContinue(call.body)) return call
    const asked = bodyObject(call.body)
    if (!hasToDo(asked)) return call
    const { body } = this.#continued(asked, await this.#deps.open())
    return body === null ? call : withBody(call, body)
  }

  #continued (asked: Json, { store }: Kept): Continued {
    const { dispatch, config } = this.#deps
    const target = typeof asked.model === 'string' ? dispatch.target(asked.model.trim(), 'responses') : null
    return continued(asked, store, target, config.snapshot.svc.server.v1_body_limit_bytes)
  }

  /** What has nothing to do with kept responses, whatever becomes of them. */
  async #alone (call: Call): Promise<typeof handled> {
    const { open, log } = this.#deps
    const kept = !keepsFrom(call) ? null : await open().catch((error: unknown) => {
      // an answer that cannot be kept is still an answer
      log.error({ error: messageOf(error) }, 'a response is not kept')
      return null
    })
    return kept === null ? this.#forward(call, NOT_KEPT) : this.#kept(call, kept.store)
  }

  #kept (call: Call, store: KeptResponses, own?: OwnPart): typeof handled {
    const { clock } = this.#deps
    if (own === undefined && saysNo(call.body)) return this.#forward(call, NOT_KEPT)
    const [previous, conversation] = [own?.previous ?? null, own?.conversation ?? null]
    const tap = new Keeper(store, () => clock.now(), conversation !== null, () => own ?? ownPart(call.body))
    return this.#forward(call, { keeps: own?.isKept !== false, previous, conversation }, tap)
  }

  #forward (call: Call, standing: Standing, tap?: Keeper): typeof handled {
    const options = { ...this.options(standing), dialect: responsesDialect }
    return this.#deps.dispatch.forward(call, tap === undefined ? options : { ...options, tap })
  }

  /** How a request that stands so goes out. */
  options (standing: Standing): ForwardOptions {
    return { surface: 'responses', path: '/responses', edit: thinkingDefault, otherwise: this.#overChat(standing) }
  }

  async #inBackground (call: Call, asked: Json, { own, body }: Continued, kept: Kept): Promise<Json | SseReply> {
    const { clock } = this.#deps
    if (!own.isKept || !keepsFrom(call)) throw malformed('background', 'needs a response that is kept: omit store, or set it to true')
    const standing = { keeps: true, previous: own.previous, conversation: own.conversation }
    const now = clock.now()
    const id = newId('resp')
    const queued = {
      id, object: 'response', created_at: Math.floor(now / 1000), status: 'queued', background: true,
      error: null, incomplete_details: null, ...echoOf(asked, standing), model: textOr(asked.model, ''), output: [], usage: null
    }
    const { background: _, ...request } = body === null ? asked : bodyObject(body)
    await kept.background.start({
      queued,
      own,
      isStreamed: asked.stream === true,
      call: {
        ...this.options(standing),
        body: Buffer.from(JSON.stringify(request)),
        requestId: call.requestId,
        origin: call.request.headers
      }
    }, now)
    return asked.stream === true ? sse(signal => told(kept, id, -1, signal)) : queued
  }
}

/** Summaries of `/v1/responses/compact` are this gateway's: an engine or upstream gets what they say. */
function summariesTold (call: Call): Call {
  if (!mayHaveSummaries(call.body)) return call
  const asked = bodyObject(call.body)
  const input = withSummaries(asked.input)
  return input === null ? call : withBody(call, Buffer.from(JSON.stringify({ ...asked, input })))
}

/** False for who works in private, and for what is too large to be written while others wait. */
function keepsFrom ({ body, request }: Call): boolean {
  return body.length <= MOST_KEPT_BYTES && !isPrivate(request.headers)
}

/** Whether a request asks not to be kept; most do not speak of it, and are not read for it. */
function saysNo (body: Buffer): boolean {
  if (!body.includes('"store"')) return false
  try {
    return bodyObject(body).store === false
  } catch {
    // what is wrong with it is told where it is sent
    return false
  }
}

function ownPart (body: Buffer): OwnPart {
  const { store, input } = bodyObject(body)
  return { isKept: store !== false, input: inputItems(input), previous: null, conversation: null }
}

function withBody (call: Call, body: Buffer): Call {
  const { params, query, requestId, actor, log, request, reply } = call
  return { params, query, body, requestId, actor, log, request, reply, get signal () { return call.signal } }
}

/** A slot's reasoning default, for requests that do not speak of `reasoning`. Pure. */
function thinkingDefault (body: JsonBody, slot: NamedSlotConfig | null): BodyEdits | null {
  if (slot === null || slot.enable_thinking === null || body.has('reasoning')) return null
  return { add: { chat_template_kwargs: { enable_thinking: slot.enable_thinking } } }
}
