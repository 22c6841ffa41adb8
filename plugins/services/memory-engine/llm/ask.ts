import { randomUUID } from 'node:crypto'
import { within } from 'svc-gateway/plugin'
import type { Core } from '../core.js'
import { PermanentFailure } from '../operations/operation.js'
import { tokensOf } from '../recall/tokens.js'
import type { ChatAnswer, ChatAsk, Purpose } from './model.js'

/** The step needs a model, and none serves it. */
export class NoModel extends PermanentFailure {
  constructor (why: string) {
    super(`${why}; create and enable a slot of type llm with \`svc slot create\`, or name another with \`svc memory graph enable --slot <name>\``)
    this.name = 'NoModel'
  }
}

/** Throws `NoModel` if no language model serves the bank. */
export function requireChat (core: Core, what: string): string {
  const { chat } = core.outside.abilities
  if (chat.model === null) throw new NoModel(`${what} needs a language model: ${chat.why}`)
  return chat.model
}

/** The model did not answer this time. */
export class ModelTrouble extends Error {}

const TIMEOUT_MS = 300_000
const KEPT_CALLS = 2000
/** A retry helps against these. */
const PASSING = new Set([408, 409, 425, 429])

/**
 * Asks the language model, and records that it did. A model that knows no `response_format` is asked without: every answer is
 * checked anyway. Rejects with `NoModel`, a `PermanentFailure` where the same question fails again, else with `ModelTrouble`.
 */
export async function ask (core: Core, purpose: Purpose, question: ChatAsk, signal: AbortSignal): Promise<ChatAnswer> {
  const model = requireChat(core, purpose.operation)
  const startedAt = core.now()
  const start = performance.now()
  const inputTokens = question.messages.reduce((sum, { content }) => sum + tokensOf(content), 0)
  const record = (status: string, error: string | null, answer: ChatAnswer | null): void => {
    if (core.closing.aborted) return
    note(core, purpose, {
      model, status, error, startedAt, durationMs: performance.now() - start, inputTokens: answer?.inputTokens ?? inputTokens,
      outputTokens: answer?.outputTokens ?? 0
    })
  }
  const timeoutMs = core.outside.abilities.chatTimeoutMs ?? TIMEOUT_MS
  return await within(signal, timeoutMs, async bound => {
    try {
      const answer = await complete(core, { model, isBackground: purpose.operation !== 'reflect' }, question, bound)
      record('success', null, answer)
      return answer
    } catch (error) {
      const isLate = bound.aborted && !signal.aborted
      const why = isLate ? `the model ${model} did not answer within ${timeoutMs / 1000} s: llm_timeout_s of [memory.graph]` : (error as Error).message
      record('error', why.slice(0, 500), null)
      signal.throwIfAborted()
      throw error instanceof PermanentFailure ? error : new ModelTrouble(why)
    }
  })
}

interface Route {
  readonly model: string
  readonly isBackground: boolean
}

async function complete (
  core: Core, { model, isBackground }: Route, question: ChatAsk, signal: AbortSignal
): Promise<ChatAnswer> {
  const { messages, maxTokens, json } = question
  const send = (body: object): Promise<Reply> => post(core, body, isBackground, signal)
  const plain = { model, messages, max_tokens: maxTokens, temperature: 0, stream: false }
  if (json === undefined) return answerOf(await send(plain), plain)
  const format = json === true ? { type: 'json_object' } : { type: 'json_schema', json_schema: { name: 'answer', schema: json } }
  const first = await send({ ...plain, response_format: format })
  return first.status === 400 || first.status === 422 ? answerOf(await send(plain), plain) : answerOf(first, plain)
}

interface Reply {
  readonly status: number
  readonly text: string
}

async function post (core: Core, body: object, background: boolean, signal: AbortSignal): Promise<Reply> {
  const { status, body: bytes } = await core.outside.run({ to: 'chat', body: Buffer.from(JSON.stringify(body)), background }, signal)
  return { status, text: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8') }
}

interface Completion {
  readonly model?: unknown
  readonly choices?: ReadonlyArray<{ readonly message?: { readonly content?: unknown } }>
  readonly usage?: { readonly prompt_tokens?: unknown, readonly completion_tokens?: unknown }
  readonly error?: { readonly message?: unknown }
}

function answerOf ({ status, text }: Reply, { model, messages }: { readonly model: string, readonly messages: ChatAsk['messages'] }): ChatAnswer {
  const completion = parsed(text)
  if (status >= 300) {
    const said = typeof completion.error?.message === 'string' ? completion.error.message : text.slice(0, 200)
    const message = `the model ${model} answered ${status}: ${said}`
    throw status < 500 && !PASSING.has(status) ? new PermanentFailure(message) : new Error(message)
  }
  const content = completion.choices?.[0]?.message?.content
  if (typeof content !== 'string') throw new PermanentFailure(`the model ${model} answered without text`)
  const { prompt_tokens: input, completion_tokens: output } = completion.usage ?? {}
  return {
    text: content,
    model: typeof completion.model === 'string' ? completion.model : model,
    inputTokens: typeof input === 'number' ? input : messages.reduce((sum, message) => sum + tokensOf(message.content), 0),
    outputTokens: typeof output === 'number' ? output : tokensOf(content)
  }
}

function parsed (text: string): Completion {
  try {
    const value = JSON.parse(text) as unknown
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    return {}
  }
}

interface CallRecord {
  readonly model: string
  readonly status: string
  readonly error: string | null
  readonly startedAt: number
  readonly durationMs: number
  readonly inputTokens: number
  readonly outputTokens: number
}

function note (core: Core, { bank, operation, scope, traceId }: Purpose, call: CallRecord): void {
  const { store } = core
  store.transaction(() => {
    // the bank may be gone by now
    if (store.get('SELECT 1 FROM banks WHERE seq = ?', [bank]) === undefined) return
    const { rowid } = store.run(`INSERT INTO model_calls (id, bank, operation, scope, call_type, trace_id, model, status, error, started_at, duration_ms,
      input_tokens, output_tokens) VALUES (?, ?, ?, ?, 'llm', ?, ?, ?, ?, ?, ?, ?, ?)`, [
      randomUUID(), bank, operation, scope, traceId, call.model, call.status, call.error, call.startedAt,
      Math.round(call.durationMs),
      call.inputTokens, call.outputTokens
    ])
    store.run('DELETE FROM model_calls WHERE bank = ? AND seq <= ?', [bank, rowid - KEPT_CALLS])
    const day = new Date(call.startedAt).toISOString().slice(0, 10)
    store.run(`INSERT INTO token_use (bank, day, operation, tokens) VALUES (?, ?, ?, ?)
      ON CONFLICT (bank, day, operation) DO UPDATE SET tokens = tokens + excluded.tokens`, [bank, day, operation, call.inputTokens + call.outputTokens])
  })
}

/** Tokens that models took for this work of a bank since midnight, UTC. */
export function tokensToday (core: Core, bank: number, operation: Purpose['operation']): number {
  const day = new Date(core.now()).toISOString().slice(0, 10)
  return core.store.get<{ tokens: number }>('SELECT tokens FROM token_use WHERE bank = ? AND day = ? AND operation = ?', [bank, day, operation])?.tokens ?? 0
}
