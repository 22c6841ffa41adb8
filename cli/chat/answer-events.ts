import { z } from 'zod'
import { readRefusal } from '../client/api-failure.js'
import type { ApiClient } from '../client/client.js'
import { CliFailure } from '../failure.js'

const deltaSchema = z.looseObject({ content: z.string().nullish(), reasoning_content: z.string().nullish() })

const choiceSchema = z.looseObject({
  delta: deltaSchema.optional(), message: deltaSchema.optional(), finish_reason: z.string().nullish()
})

const chunkSchema = z.looseObject({
  choices: z.array(choiceSchema).default([]),
  usage: z.looseObject({ completion_tokens: z.number().optional() }).nullish()
})

/** What a part of an answer brings. */
export interface AnswerPart {
  readonly content: string
  readonly reasoning: string
  readonly finish: string | null
  /** Tokens of the whole answer, once the engine tells. */
  readonly tokens: number | null
  /** As it came, for `--json`. */
  readonly raw: unknown
}

const PATH = '/v1/chat/completions'

/**
 * The answer part by part. Leaving the loop cancels it. Throws a `CliFailure` for an error event in the stream, and for a
 * stream that ends before the answer does.
 */
export async function* streamAnswer (client: ApiClient, body: object, signal: AbortSignal): AsyncGenerator<AnswerPart> {
  let complete = false
  for await (const { data } of client.events({ method: 'POST', path: PATH, body: { ...body, stream: true }, signal })) {
    if (data === '[DONE]') return
    const raw = parse(data)
    if (typeof raw === 'object' && raw !== null && 'error' in raw) throw brokenAnswer(data)
    const part = partOf(raw)
    complete ||= part.finish !== null
    yield part
  }
  // some engines leave out the last line; one that has told why it stopped has said all
  if (!complete) throw new CliFailure('the answer ended early', { hints: ['`svc slot list` shows whether the engine is still running.'] })
}

export async function wholeAnswer (client: ApiClient, body: object, signal: AbortSignal): Promise<AnswerPart> {
  return partOf(await client.raw({ method: 'POST', path: PATH, body, signal, timeoutMs: null }))
}

function partOf (raw: unknown): AnswerPart {
  const chunk = chunkSchema.safeParse(raw)
  const choice = chunk.data?.choices[0]
  const text = choice?.delta ?? choice?.message
  return {
    content: text?.content ?? '',
    reasoning: text?.reasoning_content ?? '',
    finish: choice?.finish_reason ?? null,
    tokens: chunk.data?.usage?.completion_tokens ?? null,
    raw
  }
}

function parse (data: string): unknown {
  try {
    return JSON.parse(data)
  } catch (error) {
    throw new CliFailure('the answer contains a line that is not JSON', { cause: error })
  }
}

function brokenAnswer (data: string): CliFailure {
  const { code, message, hints } = readRefusal(data)
  return new CliFailure(`the answer broke off: ${message}${code === null ? '' : ` (${code})`}`, { hints })
}
