import { svcError, type Clock, type DispatchService, type handled, type Otherwise, type RouteCall, type SlotService } from 'svc-gateway/plugin'
import { ESTIMATE_HEADER, countTokens } from '../../v1/messages/ref.js'
import { askChat, isObject, requestObject, shaped, warningHeader, type Json, type Shaped } from '../../v1/over-chat/ref.js'
import { GeminiAnswer, type AnswerShape } from './answer.js'
import { geminiDialect, listDialect } from './dialect.js'
import { embed, textsOf } from './embed.js'
import { geminiError } from './errors.js'
import { member } from './members.js'
import { chatRequest, type ChatRequest } from './request.js'

export interface AskServices {
  readonly clock: Clock
  readonly dispatch: DispatchService
  readonly slots: SlotService
}

type AskCall = RouteCall<{ readonly '*': string }, { readonly alt?: string | undefined }, Buffer>

/** Answers `POST /v1beta/models/{model}:{method}`. Throws for what cannot be asked. */
export function ask (services: AskServices, otherwise: Otherwise, call: AskCall): typeof handled | Promise<object> {
  const { model, method } = targetOf(call.params['*'])
  const asked = requestObject(call.body)
  switch (method) {
    case 'generateContent': return generate(services, otherwise, call, { model, asked, shape: 'whole' })
    case 'streamGenerateContent':
      return generate(services, otherwise, call, { model, asked, shape: call.query.alt === 'sse' ? 'events' : 'list' })
    case 'countTokens': return count(services, call, model, asked)
    case 'embedContent': return vectors(services, call, model, asked, false)
    case 'batchEmbedContents': return vectors(services, call, model, asked, true)
    default: throw geminiError('gemini.not_here', `this gateway does not support '${method.slice(0, 64)}' of a model, only generateContent, streamGenerateContent, countTokens, embedContent and batchEmbedContents`)
  }
}

interface Target {
  readonly model: string
  readonly method: string
}

/** Ids of models may have colons of their own. */
function targetOf (path: string): Target {
  const colon = path.lastIndexOf(':')
  const model = colon === -1 ? '' : path.slice(0, colon)
  if (model === '') throw svcError('system.http_404', 'give a model and a method: POST /v1beta/models/<model>:generateContent')
  return { model, method: path.slice(colon + 1) }
}

interface Generation {
  readonly model: string
  readonly asked: Json
  readonly shape: AnswerShape
}

function generate (
  services: AskServices, otherwise: Otherwise, call: AskCall, { model, asked, shape }: Generation
): typeof handled {
  const { dispatch } = services
  const stream = shape !== 'whole'
  const { request: { showsThoughts, warnings }, body } = shapedFor(services, asked, model, stream)
  const dialect = shape === 'list' ? listDialect : geminiDialect
  return dispatch.compose(call, { surface: 'chat', model, stream, dialect }, signal => askChat(dispatch, {
    request: { requestId: call.requestId, headers: call.request.headers },
    body,
    stream,
    ...shape === 'list' ? { streamType: 'application/json' } : {},
    writer: () => new GeminiAnswer(model, shape, showsThoughts),
    warnings,
    otherwise,
    signal
  }))
}

function shapedFor ({ dispatch, slots }: AskServices, asked: Json, model: string, stream: boolean): Shaped<ChatRequest> {
  return shaped(dispatch, model, slot => chatRequest(asked, model, slot === null ? null : slots.config(slot), stream))
}

async function count (services: AskServices, { reply, signal }: AskCall, model: string, asked: Json): Promise<object> {
  const { dispatch, slots } = services
  const whole = member(asked, 'generateContentRequest')
  const { request: { body, warnings }, slot } = shapedFor(services, isObject(whole) ? whole : asked, model, false)
  if (dispatch.target(model, 'chat') === null) await dispatch.model(model, signal)
  const { count: totalTokens, isEstimate } = await countTokens(slots, slot, body, signal)
  void reply.headers({ ...warningHeader(warnings), ...isEstimate ? { [ESTIMATE_HEADER]: 'totalTokens' } : {} })
  return { totalTokens }
}

function vectors ({ dispatch }: AskServices, call: AskCall, model: string, asked: Json, isBatch: boolean): typeof handled {
  const wish = { ...textsOf(asked, isBatch), model, isBatch }
  return dispatch.compose(call, { surface: 'embeddings', model, stream: false, dialect: geminiDialect }, signal => embed(dispatch, call, wish, signal))
}
