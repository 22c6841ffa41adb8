/*
 * Engines and upstreams that answer in the shapes that their makers' servers send: what a request asks for decides what it gets.
 */

import type { EngineScript, SeenRequest } from '../../../kernel/testing/index.js'

const JSON_TYPE = { 'content-type': 'application/json' }
const SSE = { 'content-type': 'text/event-stream; charset=utf-8' }

type Fields = Readonly<Record<string, unknown>>

/** Pieces of what a model says. */
export const said = {
  text: ['Hello', ', wor', 'ld é🎈.'], picture: ['A ', 'picture.'], shape: ['{"mood"', ':"good"}'], args: ['{"pla', 'ce":"Rome"}']
} as const

interface Answer {
  readonly text: readonly string[]
  /** Of a call. */
  readonly args: readonly string[] | null
}

interface Formats {
  readonly tools?: unknown
  readonly response_format?: unknown
  readonly text?: { readonly format?: Fields }
  readonly output_config?: { readonly format?: Fields }
}

/** The same for every wire format. */
function answerTo (body: string): Answer {
  const { tools, response_format: format, text, output_config: output } = JSON.parse(body) as Formats
  if (Array.isArray(tools) && tools.length > 0) return { text: [], args: said.args }
  if (/"(?:image_url|input_image|image)"/.test(body)) return { text: said.picture, args: null }
  if (format !== undefined || text?.format?.type === 'json_schema' || output?.format !== undefined) return { text: said.shape, args: null }
  return { text: said.text, args: null }
}

function reply (body: string, whole: object, stream: readonly string[]): EngineScript {
  return /"stream":true/.test(body) ? { headers: SSE, chunks: stream } : { headers: JSON_TYPE, chunks: [JSON.stringify(whole)] }
}

const event = (data: { readonly type: string } & Fields): string => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`

/** Of OpenAI: the reason in a chunk of its own, usage behind it where it is asked for, padding in each. */
export function chat (body: string): EngineScript {
  const { text, args } = answerTo(body)
  const head = { id: 'chatcmpl-CxyZ', created: 1_795_000_000, model: 'gpt-9', service_tier: 'default', system_fingerprint: 'fp_1' }
  const usage = {
    prompt_tokens: 12, completion_tokens: 5, total_tokens: 17, prompt_tokens_details: { cached_tokens: 4, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0, accepted_prediction_tokens: 0 }
  }
  const reason = args === null ? 'stop' : 'tool_calls'
  const call = { id: 'call_1', type: 'function', function: { name: 'weather', arguments: (args ?? []).join('') } }
  const chunk = (delta: object, finish: string | null = null): string =>
    `data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }], usage: null, obfuscation: 'xY3' })}\n\n`
  const message = {
    role: 'assistant', content: args === null ? text.join('') : null, refusal: null, annotations: [],
    ...args === null ? {} : { tool_calls: [call] }
  }
  const choices = [{ index: 0, message, logprobs: null, finish_reason: reason }]
  return reply(body, { ...head, object: 'chat.completion', choices, usage }, [
    chunk({ role: 'assistant', content: args === null ? '' : null, refusal: null }),
    ...text.map(content => chunk({ content })),
    ...args === null ? [] : [chunk({ tool_calls: [{ index: 0, ...call, function: { name: 'weather', arguments: '' } }] })],
    ...(args ?? []).map(piece => chunk({ tool_calls: [{ index: 0, function: { arguments: piece } }] })),
    chunk({}, reason), `data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', choices: [], usage, obfuscation: 'a' })}\n\n`, 'data: [DONE]\n\n'
  ])
}

export function completions (body: string): EngineScript {
  const { text } = answerTo(body)
  const head = { id: 'cmpl-1', object: 'text_completion', created: 1_795_000_000, model: 'gpt-9-instruct' }
  const choice = (piece: string, end: string | null): object => ({ text: piece, index: 0, logprobs: null, finish_reason: end })
  return reply(body, { ...head, choices: [choice(text.join(''), 'stop')], usage: { prompt_tokens: 2, completion_tokens: 5, total_tokens: 7 } }, [
    ...text.map(piece => `data: ${JSON.stringify({ ...head, choices: [choice(piece, null)] })}\n\n`),
    `data: ${JSON.stringify({ ...head, choices: [choice('', 'stop')] })}\n\n`, 'data: [DONE]\n\n'
  ])
}

/** Of OpenAI: numbered events, each with all that the format has. */
export function responses (body: string): EngineScript {
  const { text, args } = answerTo(body)
  const id = `resp_${'68f0a1b2c3d4e5f6'.repeat(3)}`
  const base = { id, object: 'response', created_at: 1_795_000_000, error: null, incomplete_details: null, model: 'gpt-9' }
  const spoken = { type: 'output_text', text: text.join(''), annotations: [], logprobs: [] }
  const item = args === null
    ? { id: 'msg_1', type: 'message', status: 'completed', role: 'assistant', content: [spoken] }
    : { id: 'fc_1', type: 'function_call', status: 'completed', call_id: 'call_1', name: 'weather', arguments: args.join('') }
  const usage = {
    input_tokens: 12, input_tokens_details: { cached_tokens: 4 },
    output_tokens: 5, output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 17
  }
  const whole = { ...base, status: 'completed', output: [item], usage }
  const place = { output_index: 0, item_id: item.id }
  const part = { type: 'output_text', text: '', annotations: [], logprobs: [] }
  const events: Array<{ readonly type: string } & Fields> = [
    { type: 'response.created', response: { ...base, status: 'in_progress', output: [], usage: null } },
    { type: 'response.in_progress', response: { ...base, status: 'in_progress', output: [], usage: null } },
    { type: 'response.output_item.added', output_index: 0, item: args === null ? { ...item, status: 'in_progress', content: [] } : { ...item, status: 'in_progress', arguments: '' } },
    ...args === null
      ? [
          { type: 'response.content_part.added', ...place, content_index: 0, part },
          ...text.map(delta => ({ type: 'response.output_text.delta', ...place, content_index: 0, delta, logprobs: [], obfuscation: 'q' })),
          { type: 'response.output_text.done', ...place, content_index: 0, text: text.join(''), logprobs: [] },
          { type: 'response.content_part.done', ...place, content_index: 0, part: { ...part, text: text.join('') } }
        ]
      : [
          ...args.map(delta => ({ type: 'response.function_call_arguments.delta', ...place, delta })),
          { type: 'response.function_call_arguments.done', ...place, arguments: args.join('') }
        ],
    { type: 'response.output_item.done', output_index: 0, item },
    { type: 'response.completed', response: whole }
  ]
  return reply(body, whole, events.map((one, i) => event({ ...one, sequence_number: i })))
}

/** Of Anthropic. */
export function messages (body: string): EngineScript {
  const { text, args } = answerTo(body)
  const head = { id: 'msg_01XFD', type: 'message', role: 'assistant', model: 'claude-9-20260101' }
  const usage = { input_tokens: 8, cache_creation_input_tokens: 0, cache_read_input_tokens: 4, output_tokens: 5, service_tier: 'standard' }
  const reason = args === null ? 'end_turn' : 'tool_use'
  const block = args === null
    ? { type: 'text', text: text.join('') }
    : { type: 'tool_use', id: 'toolu_01', name: 'weather', input: JSON.parse(args.join('')) as object }
  const deltas = args === null
    ? text.map(piece => ({ type: 'text_delta', text: piece }))
    : ['', ...args].map(piece => ({ type: 'input_json_delta', partial_json: piece }))
  return reply(body, { ...head, content: [block], stop_reason: reason, stop_sequence: null, usage }, [
    event({ type: 'message_start', message: { ...head, content: [], stop_reason: null, stop_sequence: null, usage: { ...usage, output_tokens: 1 } } }),
    event({ type: 'content_block_start', index: 0, content_block: args === null ? { type: 'text', text: '' } : { ...block, input: {} } }),
    event({ type: 'ping' }),
    ...deltas.map(delta => event({ type: 'content_block_delta', index: 0, delta })),
    event({ type: 'content_block_stop', index: 0 }),
    event({ type: 'message_delta', delta: { stop_reason: reason, stop_sequence: null }, usage: { output_tokens: 5 } }),
    event({ type: 'message_stop' })
  ])
}

export type Speaks = Readonly<Record<string, (body: string) => EngineScript>>

/** A server that knows these paths below `/v1`, and refuses every other as its maker's does. */
export function speaking (paths: Speaks, models: readonly string[], missing: object): (request: SeenRequest) => EngineScript {
  return ({ method, url, body }) => {
    const path = url.replace(/^\/v1/, '').split('?')[0]!
    if (method === 'GET' && path === '/models') return { headers: JSON_TYPE, chunks: [JSON.stringify({ object: 'list', data: models.map(id => ({ id })) })] }
    const speaks = paths[path]
    return speaks === undefined ? { status: 404, headers: JSON_TYPE, chunks: [JSON.stringify(missing)] } : speaks(body.toString())
  }
}
