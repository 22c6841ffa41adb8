import type {
  ActivityLog, AdaptedAnswer, Clock, DispatchService, Otherwise, RouteCall, SlotService, handled
} from 'svc-gateway/plugin'
import { fillInMiddle } from '../../../v1/infill/ref.js'
import { askChat, requestObject, shaped, warningHeader, type Json } from '../../../v1/over-chat/ref.js'
import { emptyAnswer, OllamaAnswer, type AnswerForm, type Answered } from './answer.js'
import { modelIn } from '../body.js'
import type { Wanted } from './chat-request.js'
import { LINES, linesDialect, ollamaDialect } from '../dialect.js'
import { keep, keepAliveMs } from '../keep-alive.js'
import { nameHere } from '../names.js'
import { serverOf, type Server } from './server.js'

export interface TalkServices {
  readonly activity: ActivityLog
  readonly clock: Clock
  readonly dispatch: DispatchService
  readonly slots: SlotService
}

export interface TalkRoute {
  /** The request in the words of `/v1`. Throws for what they have no words for. */
  readonly request: (asked: Json, server: Server) => Wanted
  readonly form: AnswerForm
}

const JSON_TYPE = 'application/json'
const up: ReadonlySet<string> = new Set(['ready', 'serving', 'idle'])

/** Answers `/api/chat` or `/api/generate` by a chat completion, or a completion of the older kind. */
export function talk (
  services: TalkServices, otherwise: Otherwise, call: RouteCall<unknown, unknown, Buffer>, { request, form }: TalkRoute
): typeof handled {
  const { clock, dispatch, slots } = services
  const startedAt = clock.monotonic()
  const asked = requestObject(call.body)
  const model = modelIn(asked)
  const keepMs = keepAliveMs(asked.keep_alive)
  const name = nameHere(dispatch, model, ['chat'])
  const made = shaped(dispatch, name, at => request(asked, serverOf(slots, name, at)))
  const { request: { to, isEmpty, stream, warnings }, body, slot } = made
  // once it is asked for, a slot that was not up is still not
  const answered = (): Answered => ({ model, form, clock, startedAt, isCold: slot !== null && !up.has(slots.status(slot).state) })
  const dialect = stream ? linesDialect : ollamaDialect
  return dispatch.compose(call, { surface: to, model, stream, dialect }, async signal => {
    if (isEmpty) {
      const reason = keepMs === 0 ? 'unload' : 'load'
      const asAnswered = answered()
      await bring(services, call, slot ?? await known(dispatch, name, signal), reason, signal)
      if (reason === 'load') keep(slots, slot, keepMs)
      return told(emptyAnswer(asAnswered, reason), stream, warnings)
    }
    const answer = await askChat(dispatch, {
      request: { requestId: call.requestId, headers: call.request.headers },
      body,
      stream,
      streamType: LINES,
      completion: to === 'chat' ? undefined : to,
      writer: () => new OllamaAnswer(answered(), stream),
      warnings,
      otherwise: to === 'fim' ? fillInMiddle(dispatch, clock, 'text') : otherwise,
      signal
    })
    // counts for the engine that has answered
    if (answer.status === 200) keep(slots, slot, keepMs)
    return answer
  })
}

function told (answer: object, stream: boolean, warnings: readonly string[]): AdaptedAnswer {
  const headers = { 'content-type': stream ? LINES : JSON_TYPE, ...warningHeader(warnings) }
  return { status: 200, headers, body: Buffer.from(`${JSON.stringify(answer)}${stream ? '\n' : ''}`) }
}

/** Nothing is to be loaded of an upstream's model; one that nothing knows is refused. */
async function known (dispatch: DispatchService, model: string, signal: AbortSignal): Promise<null> {
  if (dispatch.target(model, 'chat') === null) await dispatch.model(model, signal)
  return null
}

async function bring (
  { activity, slots }: TalkServices, { actor, requestId }: RouteCall, slot: string | null, reason: 'load' | 'unload', signal: AbortSignal
): Promise<void> {
  if (slot === null) return
  if (reason === 'load') return slots.ensureReady(slot, signal)
  if (slots.status(slot).engineId === null) return
  await activity.audited({ category: 'slot', action: 'slot.unload', target: slot, actor, request_id: requestId }, () => slots.unload(slot))
}
