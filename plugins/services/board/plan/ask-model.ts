import type { CallAnswer, Clock, DispatchService } from 'svc-gateway/plugin'
import { z } from 'zod'
import { boardError } from '../errors.js'
import type { PlanCall } from './planning.js'
import type { Question } from './questions.js'

const MOST_ANSWER_BYTES = 4 * 1024 * 1024
const SHOWN = 200

export interface ModelDeps {
  readonly dispatch: DispatchService
  readonly clock: Clock
  readonly model: () => string
  readonly maxTokens: number
  readonly timeoutMs: number
}

/**
 * Asks a model and reads its answer as JSON of a shape. A model that knows no `response_format` is asked once more without: every
 * answer is checked anyway. Throws `board.no_plan`.
 */
export async function askModel<T> (
  { dispatch, clock, model, maxTokens, timeoutMs }: ModelDeps, { system, user, schema }: Question<T>,
  { requestId, origin, signal }: Pick<PlanCall, 'requestId' | 'origin' | 'signal'>
): Promise<T> {
  const name = model()
  const late = new AbortController()
  const timer = clock.setTimer(timeoutMs, () => late.abort(noPlan(`the model ${name} did not answer within ${timeoutMs / 1000} seconds`)))
  const messages = [{ role: 'system', content: system }, { role: 'user', content: user }]
  const plain = { model: name, messages, max_tokens: maxTokens, temperature: 0, stream: false }
  const json = z.toJSONSchema(schema, { io: 'input' })
  const send = async (body: object): Promise<{ readonly status: number, readonly text: string }> => {
    const answer = await dispatch.call({
      surface: 'chat', path: '/chat/completions', body: Buffer.from(JSON.stringify(body)), requestId, origin, priority: 'normal',
      signal: AbortSignal.any([signal, late.signal])
    })
    return { status: answer.status, text: await textOf(answer) }
  }
  try {
    const strict = { ...plain, response_format: { type: 'json_schema', json_schema: { name: 'plan', schema: json } } }
    const first = await send(strict)
    const { status, text } = first.status === 400 || first.status === 422 ? await send(plain) : first
    if (status > 299) throw noPlan(`the model ${name} answered ${status}: ${shown(text)}`)
    return planOf(name, text, schema)
  } catch (error) {
    late.signal.throwIfAborted()
    throw error
  } finally {
    timer.cancel()
  }
}

interface Completion {
  readonly choices?: ReadonlyArray<{ readonly message?: { readonly content?: unknown }, readonly finish_reason?: unknown }>
}

function planOf<T> (model: string, text: string, schema: z.ZodType<T>): T {
  const choice = (parsed(text) as Completion | null)?.choices?.[0]
  const content = choice?.message?.content
  if (typeof content !== 'string') throw noPlan(`the model ${model} answered without text`)
  if (choice?.finish_reason === 'length') throw noPlan(`the answer of the model ${model} is too long`)
  const said = content.replace(/^\s*<think>[\s\S]*?<\/think>/, '').trim()
  const fenced = /^```(?:json)?\s*\n([\s\S]*?)\n?```$/.exec(said)
  const value = parsed(fenced?.[1] ?? said)
  if (value === null) throw noPlan(`the model ${model} answered with something that is not JSON: ${shown(said)}`)
  const checked = schema.safeParse(value)
  if (!checked.success) throw noPlan(`the answer of the model ${model} is invalid: ${checked.error.issues.slice(0, 5).map(({ path, message }) => `${path.join('.')}: ${message}`).join('; ')}`)
  return checked.data
}

/** Null for what is no JSON. */
function parsed (text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return null
  }
}

async function textOf ({ body }: CallAnswer): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > MOST_ANSWER_BYTES) throw noPlan('the answer of the model is too long')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function noPlan (why: string): Error {
  return boardError('board.no_plan', `${why}; nothing was changed`)
}

function shown (said: string): string {
  const line = said.replaceAll(/\s+/g, ' ').trim()
  return line === '' ? 'nothing' : line.length <= SHOWN ? line : `${line.slice(0, SHOWN)}…`
}
