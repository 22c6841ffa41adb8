import { svcError, type CallAnswer, type Clock } from 'svc-gateway/plugin'
import { readAll } from '../../omni/ref.js'
import { isObject, textOr, type Json } from '../../over-chat/ref.js'
import { echoOf } from '../chat-request.js'
import { responsesError } from '../errors.js'
import { newId } from '../ids.js'
import { replayed } from '../kept/replay.js'
import { lastEventOf } from '../last-event.js'
import { preparedTurn, type PreparedTurn, type TurnDeps } from './prepared-turn.js'
import { refusalEvent } from './server-event.js'

const LONGEST_ANSWER_BYTES = 64 * 1024 * 1024
const LONGEST_REFUSAL_BYTES = 64 * 1024

const NO_USAGE = {
  input_tokens: 0, input_tokens_details: { cached_tokens: 0 },
  output_tokens: 0, output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 0
}

/** Sends an event, which is JSON. Resolves when the client may get the next one. */
export type Tell = (data: string) => Promise<void>

/**
 * Answers a request of a connection with the events of a stream, the last of which ends it.
 * @param hold called with the bytes that go out; throws where too much does already
 */
export async function answerTurn (
  asked: Json, deps: TurnDeps, tell: Tell, hold: (bytes: number) => void, signal: AbortSignal
): Promise<void> {
  const turn = await preparedTurn(asked, deps)
  const { body, standing, tap } = turn
  hold(body.length)
  const { requestId, headers: origin } = deps
  const options = { ...deps.options(standing), tap }
  const answer = await deps.dispatch.call({ ...options, body, requestId, origin, signal })
  if (answer.status !== 200) return await tell(JSON.stringify(await refused(answer)))
  if (answer.headers['content-type']?.startsWith('text/event-stream') === true) return await passed(answer, deps.clock, turn, tell)
  const said = parsed((await readAll(answer, LONGEST_ANSWER_BYTES)).toString('utf8'))
  if (!isObject(said) || said.object !== 'response') throw svcError('dispatch.upstream_failed', 'the engine answered with something that is not a response')
  await toldWhole(said, turn, tell)
}

/** Remembers a request that is not to be answered, as a response that says nothing: another one goes on from it. */
export async function prepareTurn (asked: Json, deps: TurnDeps, tell: Tell, signal: AbortSignal): Promise<void> {
  const { dispatch, clock } = deps
  const model = textOr(asked.model, '').trim()
  if (model === '') throw svcError('request.missing_model', 'the request names no model: \'model\' is a slot, a model id or a model of an upstream', { param: 'model' })
  if (dispatch.target(model, 'responses') === null && dispatch.target(model, 'chat') === null) await dispatch.model(model, signal)
  const turn = await preparedTurn({ ...asked, store: false }, deps)
  const response = {
    id: newId('resp'), object: 'response', created_at: Math.floor(clock.now() / 1000), status: 'completed', background: false, error: null,
    incomplete_details: null, ...echoOf(asked, { ...turn.standing, keeps: false }), model, output: [],
    usage: NO_USAGE
  }
  await toldWhole(response, turn, tell)
}

/** The events of an engine, as they come. */
async function passed ({ body }: CallAnswer, clock: Clock, turn: PreparedTurn, tell: Tell): Promise<void> {
  const last = await lastEventOf(body, clock, async data => {
    if (!/^\s*\{/.test(data)) return null
    const isLast = endsWith(data, turn)
    await tell(data)
    return isLast ? data : null
  })
  if (last === null) throw svcError('dispatch.upstream_failed', 'the answer of the engine ended before it was complete')
}

/** Whether an event is the last one. The response is remembered before its client knows of it. */
function endsWith (data: string, { remember }: PreparedTurn): boolean {
  // most are not, and are not read for it
  if (!/"(?:response\.(?:completed|incomplete|failed)|error)"/.test(data)) return false
  const event = parsed(data)
  if (!isObject(event)) return false
  const { type, response } = event
  if (type === 'error' || type === 'response.failed') return true
  if (type !== 'response.completed' && type !== 'response.incomplete') return false
  if (isObject(response)) remember(response)
  return true
}

async function toldWhole (response: Json, { remember }: PreparedTurn, tell: Tell): Promise<void> {
  remember(response)
  for await (const event of replayed(response, () => Promise.resolve(response))) await tell(JSON.stringify(event))
}

async function refused (answer: CallAnswer): Promise<object> {
  const text = (await readAll(answer, LONGEST_REFUSAL_BYTES)).toString('utf8')
  const event = refusalEvent(answer.status, parsed(text))
  if (event !== null) return event
  throw responsesError('responses.engine_refused', `the engine refused with status ${answer.status}: ${text.slice(0, 500)}`, {
    details: { upstream_status: answer.status }
  })
}

function parsed (text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return null
  }
}
