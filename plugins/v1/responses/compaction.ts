import type { Clock, DispatchService, Otherwise } from 'svc-gateway/plugin'
import {
  askChat, bodyObject, isObject, malformed, NO_USAGE, textOr, type AnswerWriter, type ChatEnd, type ChatUsage, type Json
} from '../over-chat/ref.js'
import { chatOverMessages } from '../over-messages/ref.js'
import { usageOf } from './chat-answer.js'
import { chatRequest, NOT_KEPT } from './chat-request.js'
import { responsesError } from './errors.js'
import { newId } from './ids.js'
import { inputItems } from './kept/items.js'
import { opened, sealed } from './sealed.js'

/** Of a summary, in tokens. */
const LONGEST = 4096
const TASK = 'You write the summary that takes the place of a conversation between a user and an assistant. Keep what the assistant ' +
  'needs in order to go on: the tasks and the wishes of the user, what was decided and why, what was found out or done, with names, ' +
  'numbers, paths and results of tools as they stand there, and what is still to be done. Write plain text, and nothing but the summary.'
const INTRODUCTION = 'Summary of the conversation up to here:\n\n'

/**
 * A conversation as the messages of its user and a summary of all of it, which a model writes that speaks chat: for a request
 * that goes on from there.
 */
export function compactionOverChat (dispatch: DispatchService, clock: Clock): Otherwise {
  const otherwise = chatOverMessages(dispatch, clock)
  return {
    surface: 'chat',
    take (request) {
      const asked = bodyObject(request.body)
      const { body: { model, messages }, warnings } = chatRequest({ ...asked, input: asked.input ?? [] }, request.slot, NOT_KEPT)
      if ((messages as readonly Json[]).every(({ role }) => role === 'system' || role === 'developer')) throw malformed('input', 'has nothing of a conversation that a summary could be made of')
      const users = inputItems(asked.input).filter(({ type, role }) => type === 'message' && role === 'user')
      const body = {
        model,
        max_tokens: LONGEST,
        messages: [{ role: 'system', content: TASK }, { role: 'user', content: transcript(messages) }],
        // thoughts would take of its tokens; of an upstream's model it is not known whether it can do without
        ...request.slot === null ? {} : { chat_template_kwargs: { enable_thinking: false } }
      }
      return {
        stream: false,
        answer: signal => askChat(dispatch, {
          request, body, stream: false, warnings, otherwise, signal,
          writer: () => new CompactionWriter(users, Math.floor(clock.now() / 1000))
        })
      }
    }
  }
}

/**
 * The items of a request with the summaries that were made here as what they say, which engines and upstreams understand.
 * Null where there are none. Pure.
 */
export function withSummaries (input: unknown): readonly unknown[] | null {
  if (!Array.isArray(input)) return null
  const told = input.map(item => summaryIn(item) ?? item as unknown)
  return told.some((item, i) => item !== input[i]) ? told : null
}

/** Whether a request may have such items; most are not read for it. */
export function mayHaveSummaries (body: Buffer): boolean {
  return body.includes('"compaction"')
}

function summaryIn (item: unknown): Json | null {
  if (!isObject(item) || item.type !== 'compaction') return null
  const summary = opened(item.encrypted_content)
  return summary === null ? null : { type: 'message', role: 'assistant', content: INTRODUCTION + summary }
}

/** Chat messages as one text, with pictures and sounds in their places: models go on with messages, and summarize texts. */
function transcript (messages: unknown): unknown {
  const parts: Json[] = []
  let text = ''
  for (const message of messages as readonly Json[]) {
    text += `<${textOr(message.role, 'user')}>\n`
    for (const part of partsOf(message)) {
      if (typeof part.text === 'string') {
        text += `${part.text}\n`
        continue
      }
      parts.push({ type: 'text', text }, part)
      text = ''
    }
  }
  return parts.length === 0 ? text : [...parts, { type: 'text', text }]
}

function partsOf ({ content, tool_calls: calls }: Json): readonly Json[] {
  const said = Array.isArray(content) ? content as readonly Json[] : typeof content === 'string' ? [{ text: content }] : []
  const called = Array.isArray(calls) ? calls.map(({ function: call }: Json) => ({ text: `called ${JSON.stringify(call)}` })) : []
  return [...said, ...called]
}

class CompactionWriter implements AnswerWriter {
  readonly #users: readonly Json[]
  readonly #createdAt: number
  #summary = ''
  #usage: ChatUsage = NO_USAGE

  constructor (users: readonly Json[], createdAt: number) {
    this.#users = users
    this.#createdAt = createdAt
  }

  begin (): void {}
  reasoning (): void {}
  call (): void {}
  logprobs (): void {}

  text (piece: string): void {
    this.#summary += piece
  }

  end ({ usage }: ChatEnd): void {
    this.#usage = usage
  }

  take (): null {
    return null
  }

  /** Throws `responses.no_summary`. */
  whole (): object {
    const summary = this.#summary.trim()
    if (summary === '') throw responsesError('responses.no_summary', 'the model wrote no summary; try again, or use another model')
    return {
      id: newId('resp'), object: 'response.compaction', created_at: this.#createdAt,
      output: [...this.#users, { id: newId('cmp'), type: 'compaction', encrypted_content: sealed(summary) }],
      usage: usageOf(this.#usage)
    }
  }

  fail (): boolean {
    return false
  }
}
