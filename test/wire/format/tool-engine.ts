import type { EngineScript, SeenRequest } from '../../../kernel/testing/index.js'

/** One answer of a model that calls tools. */
export interface Turn {
  readonly content?: string
  readonly reasoning?: string
  readonly calls?: ReadonlyArray<readonly [name: string, args: unknown]>
  /** Answers with this instead. */
  readonly refuse?: { readonly status: number, readonly body: string }
}

interface SeenMessage {
  readonly role: string
  readonly content: unknown
  readonly tool_calls?: readonly object[]
  readonly tool_call_id?: string
}

export interface SeenChat {
  readonly model: string
  readonly stream?: boolean
  readonly tool_choice?: unknown
  readonly tools?: ReadonlyArray<{ readonly function: { readonly name: string, readonly parameters: object } }>
  readonly messages: readonly SeenMessage[]
  readonly [key: string]: unknown
}

const JSON_TYPE = { 'content-type': 'application/json' }
const SSE = { 'content-type': 'text/event-stream' }

/**
 * A chat engine that calls tools, in llama-server's wire format: the n-th request gets the n-th turn. Refuses what
 * the real one refuses: conversations in which calls and their answers do not match, images without a projector.
 * @param cut pieces of that many bytes instead of whole events
 */
export function toolEngine (turns: readonly Turn[], seen: SeenChat[] = [], cut = 0): (request: SeenRequest) => EngineScript {
  return ({ body }) => {
    const chat = JSON.parse(body.toString()) as SeenChat
    const problem = problemIn(chat)
    if (problem !== null) return refusal(400, JSON.stringify({ error: { code: 400, message: problem, type: 'invalid_request_error' } }))
    const turn = turns[Math.min(seen.push(chat), turns.length) - 1]!
    if (turn.refuse !== undefined) return refusal(turn.refuse.status, turn.refuse.body)
    const head = { id: `chatcmpl-${seen.length}`, created: 1000 + seen.length, model: chat.model }
    if (chat.stream !== true) return { headers: JSON_TYPE, chunks: [JSON.stringify(whole(turn, head))] }
    const events = streamed(turn, head, chat.stream_options !== undefined)
    return { headers: SSE, chunks: cut === 0 ? events : pieces(Buffer.from(events.join('')), cut) }
  }
}

/** The events of one streamed turn: arguments come in pieces, as a model writes them. */
export function streamed (turn: Turn, head: object, usage = false): string[] {
  const event = (delta: object, finish: string | null = null): string =>
    `data: ${JSON.stringify({ choices: [{ finish_reason: finish, index: 0, delta }], ...head, object: 'chat.completion.chunk' })}\n\n`
  const calls = (turn.calls ?? []).flatMap(([name, args], index) => {
    const text = argumentsOf(args)
    const at = Math.ceil(text.length / 3)
    return [
      event({ tool_calls: [{ index, id: `call-${index}`, type: 'function', function: { name, arguments: text.slice(0, at) } }] }),
      ...[text.slice(at, 2 * at), text.slice(2 * at)]
        .map(part => event({ tool_calls: [{ index, function: { arguments: part } }] }))
    ]
  })
  return [
    event({ role: 'assistant', content: null }),
    ...words(turn.reasoning).map(word => event({ reasoning_content: word })),
    ...words(turn.content).map(word => event({ content: word })),
    ...calls,
    event({}, calls.length > 0 ? 'tool_calls' : 'stop'),
    ...usage ? [`data: ${JSON.stringify({ choices: [], ...head, usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } })}\n\n`] : [],
    'data: [DONE]\n\n'
  ]
}

export function whole ({ content, reasoning, calls = [] }: Turn, head: object): object {
  const tools = calls.map(([name, args], i) => ({ id: `call-${i}`, type: 'function', function: { name, arguments: argumentsOf(args) } }))
  const message = {
    role: 'assistant', content: content ?? null,
    ...reasoning === undefined ? {} : { reasoning_content: reasoning }, ...tools.length === 0 ? {} : { tool_calls: tools }
  }
  return {
    choices: [{ finish_reason: tools.length > 0 ? 'tool_calls' : 'stop', index: 0, message }],
    ...head,
    object: 'chat.completion',
    usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
  }
}

function problemIn ({ messages, omni }: SeenChat): string | null {
  if (omni !== undefined) return 'unknown field: omni'
  const open = new Set<string>()
  for (const { role, content, tool_calls: calls = [], tool_call_id: id = '' } of messages) {
    if (role === 'tool') {
      if (typeof content !== 'string') return 'content of a tool message must be text'
      if (!open.delete(id)) return `no call has the id '${id}'`
    } else if (open.size > 0) {
      return 'calls without an answer'
    }
    for (const call of calls as ReadonlyArray<{ id?: string, function?: { arguments?: unknown } }>) {
      if (typeof call.id !== 'string' || typeof call.function?.arguments !== 'string') return 'a tool call needs an id and its arguments as text'
      open.add(call.id)
    }
    if (Array.isArray(content) && content.some(part => (part as { type: string }).type !== 'text')) {
      return 'image input is not supported - hint: if this is unexpected, you may need to provide the mmproj'
    }
  }
  return open.size > 0 ? 'calls without an answer' : null
}

function refusal (status: number, body: string): EngineScript {
  return { status, headers: JSON_TYPE, chunks: [body] }
}

function argumentsOf (args: unknown): string {
  return typeof args === 'string' ? args : JSON.stringify(args)
}

function words (text = ''): string[] {
  return text.match(/\S+\s*/g) ?? []
}

function pieces (bytes: Buffer, size: number): Buffer[] {
  const all: Buffer[] = []
  for (let i = 0; i < bytes.length; i += size) all.push(bytes.subarray(i, i + size))
  return all
}
