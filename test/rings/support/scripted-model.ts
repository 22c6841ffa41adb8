import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { chatAnswer, chatStream } from '../../../kernel/testing/index.js'

/** What the model says once a tool has answered it. */
export const LAST_WORDS = 'The ring has seen the slots.'

/** Large enough for an agent to list the tools of its servers to the model, instead of offering a search for them. */
const WINDOW = 131_072

type Json = Readonly<Record<string, unknown>>

/** A call of a tool. */
export interface Want {
  /** The end of its name, or all of it. */
  readonly tool: string
  /** In the words of chat completions: JSON. */
  readonly args: string
}

export interface ScriptedModel {
  readonly url: string
  /** Paths that were asked for and that it does not have. */
  readonly unknown: readonly string[]
  /** How often it called the tool, and how often it was given an answer of it. */
  readonly counts: { calls: number, answers: number }
  /** What it calls from now on. */
  wants: Want
  /** In chat completions: what it calls once that has been answered, or where that is not there. */
  then: Want | null
  /** Awaited before each answer of a script; in chat completions, a text is the answer. */
  asked: (body: string) => Promise<string | undefined | void>
}

/**
 * A model that calls the first tool whose name ends with `tool`, and speaks its last words when it is told what came of it:
 * in the words of chat completions, Responses, Messages and Gemini; with `chatOnly`, in the first of these alone.
 */
export async function scriptedModel (t: Test, tool: string, { chatOnly = false } = {}): Promise<ScriptedModel> {
  const unknown: string[] = []
  const counts = { calls: 0, answers: 0 }
  const scripts: ReadonlyArray<readonly [RegExp, (body: Json, say: Say, model: ScriptedModel) => Did]> = [
    [/\/chat\/completions$/, chat], [/\/responses$/, responses], [/\/messages$/, messages], [/:(?:streamG|g)enerateContent$/, gemini]
  ]
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const path = request.url!.split('?', 1)[0]!
    const script = (chatOnly ? scripts.slice(0, 1) : scripts).find(([pattern]) => pattern.test(path))?.[1]
    if (script === undefined || request.method !== 'POST') {
      if (path.endsWith('/models')) return void send(response, { object: 'list', data: [{ id: 'scripted', object: 'model', owned_by: 'ring', context_length: WINDOW }] })
      if (path.endsWith('/count_tokens')) return void send(response, { input_tokens: 10 })
      unknown.push(`${request.method} ${path}`)
      return void response.writeHead(404, { 'content-type': 'application/json' }).end('{"error":{"message":"not here"}}')
    }
    const text = Buffer.concat(chunks).toString()
    const body = JSON.parse(text) as Json
    const words = await model.asked(text)
    if (typeof words === 'string' && body.stream === true) return void response.writeHead(200, { 'content-type': 'text/event-stream' }).end(chatStream([words]).join(''))
    if (typeof words === 'string') return void send(response, JSON.parse(chatAnswer(words)) as object)
    const isStream = body.stream === true || path.endsWith(':streamGenerateContent')
    const say: Say = { isStream, whole: json => send(response, json), events: events => stream(response, events) }
    const did = script(body, say, model)
    if (did === 'called') counts.calls++
    if (did === 'answered') counts.answers++
  }
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => response.writeHead(500).end(String(error)))
  })
  await new Promise<void>(resolve => { server.listen(0, '127.0.0.1', resolve) })
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const model: ScriptedModel = { url, unknown, counts, wants: { tool, args: '{}' }, then: null, asked: () => Promise.resolve() }
  return model
}

interface Say {
  readonly isStream: boolean
  readonly whole: (json: object) => void
  /** By name where the dialect has names; a text ends it. */
  readonly events: (events: ReadonlyArray<readonly [string | null, object | string]>) => void
}

type Did = 'called' | 'answered' | 'other'

function send (response: ServerResponse, json: object): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(json))
}

function stream (response: ServerResponse, events: ReadonlyArray<readonly [string | null, object | string]>): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const [name, data] of events) {
    response.write(`${name === null ? '' : `event: ${name}\n`}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`)
  }
  response.end()
}

function nameIn (names: readonly unknown[], tool: string): string | null {
  return (names.find(name => typeof name === 'string' && name.endsWith(tool)) as string | undefined) ?? null
}

function rows (value: unknown): readonly Json[] {
  return Array.isArray(value) ? value as readonly Json[] : []
}

function chat (body: Json, say: Say, { wants, then }: ScriptedModel): Did {
  const said = rows(body.messages)
  const names = rows(body.tools).map(row => (row.function as Json | undefined)?.name)
  const steps = then === null ? [wants] : [wants, then]
  const last = said.findLastIndex(({ role }) => role === 'assistant')
  const called = rows(said[last]?.tool_calls).map(call => (call.function as Json | undefined)?.name)
  // a program may put words of its own behind what a tool answered
  const hasResult = said.slice(last + 1).some(({ role }) => role === 'tool')
  const done = hasResult ? steps.findLastIndex(({ tool }) => nameIn(called, tool) !== null) : -1
  const isAnswered = done !== -1
  // some programs list the tools of servers only once they were searched for
  const search = called.length > 0 || nameIn(names, wants.tool) !== null ? null : nameIn(names, 'tool_search')
  const next = search === null ? steps.slice(done + 1).find(({ tool }) => nameIn(names, tool) !== null) : undefined
  const wanted = next === undefined ? null : nameIn(names, next.tool)
  const name = wanted ?? search
  const args = next?.args ?? JSON.stringify({ query: wants.tool })
  // one that is used twice in a conversation loses its answer in some programs
  const call = { id: `call_ring_${said.length}`, type: 'function', function: { name, arguments: args } }
  const message = name === null ? { role: 'assistant', content: LAST_WORDS } : { role: 'assistant', content: null, tool_calls: [call] }
  const finish = name === null ? 'stop' : 'tool_calls'
  const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }
  const base = { id: 'chatcmpl-ring', created: 1_700_000_000, model: 'scripted' }
  if (say.isStream) {
    const delta = name === null ? message : { role: 'assistant', content: null, tool_calls: [{ index: 0, ...call }] }
    const chunk = (choice: object): object => ({ ...base, object: 'chat.completion.chunk', choices: [{ index: 0, ...choice }] })
    say.events([
      [null, chunk({ delta, finish_reason: null })], [null, chunk({ delta: {}, finish_reason: finish })],
      [null, { ...base, object: 'chat.completion.chunk', choices: [], usage }], [null, '[DONE]']
    ])
  } else {
    say.whole({ ...base, object: 'chat.completion', choices: [{ index: 0, message, finish_reason: finish }], usage })
  }
  return wanted === null ? isAnswered ? 'answered' : 'other' : 'called'
}

function responses (body: Json, say: Say, { wants: { tool } }: ScriptedModel): Did {
  const input = rows(body.input)
  const isAnswered = input.at(-1)?.type === 'function_call_output'
  const tools = rows(body.tools).flatMap(row => row.type === 'namespace'
    ? rows(row.tools).map(inner => ({ name: inner.name, namespace: row.name }))
    : [{ name: row.name, namespace: undefined }])
  const found = tools.find(({ name }) => typeof name === 'string' && name.endsWith(tool))
  const calls = !isAnswered && found !== undefined
  const item = calls
    ? { type: 'function_call', id: 'fc_ring', call_id: 'call_ring', ...found, arguments: '{}', status: 'completed' }
    : { type: 'message', id: 'msg_ring', role: 'assistant', content: [{ type: 'output_text', text: LAST_WORDS, annotations: [] }], status: 'completed' }
  const response = {
    id: 'resp_ring', object: 'response', created_at: 1_700_000_000, model: 'scripted', status: 'completed', output: [item],
    usage: {
      input_tokens: 10, output_tokens: 5, total_tokens: 15,
      input_tokens_details: { cached_tokens: 0 }, output_tokens_details: { reasoning_tokens: 0 }
    }
  }
  if (say.isStream) {
    const delta = calls
      ? { type: 'response.function_call_arguments.delta', item_id: 'fc_ring', output_index: 0, delta: '{}' }
      : { type: 'response.output_text.delta', item_id: 'msg_ring', output_index: 0, content_index: 0, delta: LAST_WORDS }
    const events = [
      { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
      { type: 'response.output_item.added', output_index: 0, item: { ...item, ...(calls ? { arguments: '' } : { content: [] }) } },
      delta,
      { type: 'response.output_item.done', output_index: 0, item },
      { type: 'response.completed', response }
    ].map((event, sequence_number) => [event.type, { ...event, sequence_number }] as const)
    say.events(events)
  } else {
    say.whole(response)
  }
  return calls ? 'called' : isAnswered ? 'answered' : 'other'
}

function messages (body: Json, say: Say, { wants: { tool } }: ScriptedModel): Did {
  const last = rows(body.messages).filter(({ role }) => role === 'user').at(-1)
  const isAnswered = rows(last?.content).some(({ type }) => type === 'tool_result')
  const name = nameIn(rows(body.tools).map(row => row.name), tool)
  const calls = !isAnswered && name !== null
  const block = calls ? { type: 'tool_use', id: 'toolu_ring', name, input: {} } : { type: 'text', text: LAST_WORDS }
  const stop = calls ? 'tool_use' : 'end_turn'
  const usage = { input_tokens: 10, output_tokens: 5 }
  const about = { id: 'msg_ring', type: 'message', role: 'assistant', model: body.model, usage }
  const message = { ...about, content: [block], stop_reason: stop, stop_sequence: null }
  if (say.isStream) {
    const delta = calls ? { type: 'input_json_delta', partial_json: '{}' } : { type: 'text_delta', text: LAST_WORDS }
    say.events([
      ['message_start', { type: 'message_start', message: { ...message, content: [], stop_reason: null } }],
      ['content_block_start', { type: 'content_block_start', index: 0, content_block: calls ? block : { type: 'text', text: '' } }],
      ['content_block_delta', { type: 'content_block_delta', index: 0, delta }],
      ['content_block_stop', { type: 'content_block_stop', index: 0 }],
      ['message_delta', { type: 'message_delta', delta: { stop_reason: stop, stop_sequence: null }, usage: { output_tokens: 5 } }],
      ['message_stop', { type: 'message_stop' }]
    ])
  } else {
    say.whole(message)
  }
  return calls ? 'called' : isAnswered ? 'answered' : 'other'
}

function gemini (body: Json, say: Say, { wants: { tool } }: ScriptedModel): Did {
  const last = rows(body.contents).at(-1)
  const isAnswered = rows(last?.parts).some(part => part.functionResponse !== undefined)
  const name = nameIn(rows(body.tools).flatMap(row => rows(row.functionDeclarations)).map(row => row.name), tool)
  const calls = !isAnswered && name !== null
  const part = calls ? { functionCall: { name, args: {} } } : { text: LAST_WORDS }
  const whole = {
    candidates: [{ content: { role: 'model', parts: [part] }, finishReason: 'STOP', index: 0 }],
    usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 }, modelVersion: 'scripted'
  }
  if (say.isStream) say.events([[null, whole]])
  else say.whole(whole)
  return calls ? 'called' : isAnswered ? 'answered' : 'other'
}
