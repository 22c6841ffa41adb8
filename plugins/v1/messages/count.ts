import type { EngineClient, Otherwise, SlotService } from 'svc-gateway/plugin'
import { bodyObject, isObject, warningHeader } from '../over-chat/ref.js'
import { chatRequest } from './chat-request.js'

/** The name of the header that says that a number was estimated. */
export const ESTIMATE_HEADER = 'x-svc-estimate'
const CHARACTERS_PER_TOKEN = 4
/** About what a picture of usual size costs. */
const TOKENS_PER_PICTURE = 1000
/** What separates messages and names their role. */
const TOKENS_PER_MESSAGE = 4

/**
 * How many tokens a request of the Messages API has, where the engine does not count them itself: its own template and tokenizer
 * say it where it has them, else it is estimated, which the header `x-svc-estimate` tells.
 */
export function countedElsewhere (slots: Pick<SlotService, 'client'>): Otherwise {
  return {
    surface: 'chat',
    take (request) {
      const { body, warnings } = chatRequest(bodyObject(request.body), request.slot)
      return {
        stream: false,
        answer: async signal => {
          const { count, isEstimate } = await countTokens(slots, request.slot?.name ?? null, body, signal)
          const headers = { 'content-type': 'application/json', ...warningHeader(warnings), ...isEstimate ? { [ESTIMATE_HEADER]: 'input_tokens' } : {} }
          return { status: 200, headers, body: Buffer.from(JSON.stringify({ input_tokens: count })) }
        }
      }
    }
  }
}

type Body = Readonly<Record<string, unknown>>

export interface TokenCount {
  readonly count: number
  readonly isEstimate: boolean
}

/**
 * How many tokens a chat request has: by the template and tokenizer of the slot's engine where it has them and runs, else an
 * estimate.
 */
export async function countTokens (
  slots: Pick<SlotService, 'client'>, slot: string | null, body: Body, signal: AbortSignal
): Promise<TokenCount> {
  const client = slot === null ? null : slots.client(slot)
  const counted = client === null ? null : await tokens(client, body, signal)
  return { count: counted ?? estimated(body), isEstimate: counted === null }
}

/** Null for an engine that cannot say, or not of this request. */
async function tokens (client: EngineClient, body: Body, signal: AbortSignal): Promise<number | null> {
  const { messages, tools, chat_template_kwargs: kwargs, reasoning_effort: effort } = body
  if (pictures(messages) > 0) return null
  try {
    const prompt = await asked(client, '/apply-template', { messages, tools, chat_template_kwargs: kwargs, reasoning_effort: effort }, signal)
    if (!isObject(prompt) || typeof prompt.prompt !== 'string') return null
    const answer = await asked(client, '/tokenize', { content: prompt.prompt, add_special: true }, signal)
    return isObject(answer) && Array.isArray(answer.tokens) ? answer.tokens.length : null
  } catch {
    signal.throwIfAborted()
    return null
  }
}

async function asked (client: EngineClient, path: string, body: object, signal: AbortSignal): Promise<unknown> {
  const answer = await client.request({ method: 'POST', path, body, signal })
  // read in any case: an answer that is not read holds its connection
  const said = await answer.text()
  return answer.status === 200 ? JSON.parse(said) : null
}

function estimated ({ messages, tools }: Body): number {
  const list = messages as readonly Body[]
  const said = list.reduce((sum, message) => sum + lengthOf(message), 0)
  const characters = said + (tools === undefined ? 0 : JSON.stringify(tools).length)
  return Math.ceil(characters / CHARACTERS_PER_TOKEN) + list.length * TOKENS_PER_MESSAGE + pictures(messages) * TOKENS_PER_PICTURE
}

function lengthOf ({ content, reasoning_content: thought, tool_calls: calls }: Body): number {
  const texts = Array.isArray(content) ? content.map((part: { readonly text?: string }) => part.text ?? '') : [content ?? '']
  return [...texts, thought ?? ''].join('').length + (calls === undefined ? 0 : JSON.stringify(calls).length)
}

function pictures (messages: unknown): number {
  const list = messages as ReadonlyArray<{ readonly content?: unknown }>
  return list.reduce((sum, { content }) => sum + (Array.isArray(content) ? content.filter(part => !('text' in part)).length : 0), 0)
}
