import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import t from 'tap'
import gemini from '../../../plugins/dialects/gemini/index.js'
import ollama from '../../../plugins/dialects/ollama/index.js'
import hub from '../../../plugins/services/hub/index.js'
import library from '../../../plugins/services/library/index.js'
import pull from '../../../plugins/services/pull/index.js'
import messageRoutes from '../../../plugins/v1/messages/index.js'
import responseRoutes from '../../../plugins/v1/responses/index.js'
import { createFakeEngine, createFakeProviderPlugin } from '../../../kernel/testing/index.js'
import { chat, completions, messages, responses, said, speaking, type Speaks } from './dialect-engines.js'
import { upstreamTable } from '../fake-upstream.js'
import { wireGateway } from '../wire-gateway.js'

/** What an unmodified client ends up with: text, or a call as `name(arguments)`. */
type Cell = (model: string) => Promise<string>

const question = [{ role: 'user' as const, content: 'hi' }]
const parameters = { type: 'object' as const, properties: { place: { type: 'string' } } }
const schema = { type: 'object', properties: { mood: { type: 'string' } }, required: ['mood'], additionalProperties: false }
const png = 'data:image/png;base64,AAAA'
const expected = {
  plain: said.text.join(''), streamed: said.text.join(''), tools: 'weather({"place":"Rome"})', streamedTools: 'weather({"place":"Rome"})',
  schema: said.shape.join(''), image: said.picture.join('')
} as const
type Kind = keyof typeof expected
type Ask = (more: object, model: string) => Promise<string>
type Row = Partial<Record<Kind, Cell>>

const row = (whole: Ask, streamed: Ask, tools: object, shape: object, image: object): Record<Kind, Cell> => ({
  plain: model => whole({}, model),
  streamed: model => streamed({}, model),
  tools: model => whole(tools, model),
  streamedTools: model => streamed(tools, model),
  schema: model => whole(shape, model),
  image: model => whole(image, model)
})

const chatTools = { tools: [{ type: 'function', function: { name: 'weather', parameters } }] }

/** The dialects whose clients a ring runs: here by their bodies. */
function otherCells (url: string): Readonly<Record<string, Row>> {
  const post = async (path: string, body: object): Promise<string> => {
    const headers = { 'content-type': 'application/json' }
    const answer = await fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    if (answer.status !== 200) throw new Error(await answer.text())
    return answer.text()
  }
  interface Call { readonly name: string, readonly arguments?: object, readonly args?: object }
  const called = (call: Call): string => `${call.name}(${JSON.stringify(call.arguments ?? call.args)})`
  interface Message { readonly content: string, readonly tool_calls?: ReadonlyArray<{ readonly function: Call }> }
  interface Line { readonly message: Message }
  const lines = (text: string): string => text.trimEnd().split('\n').map(line => (JSON.parse(line) as Line).message)
    .map(({ content, tool_calls: calls = [] }) => content + calls.map(call => called(call.function)).join('')).join('')
  interface Part { readonly text?: string, readonly functionCall?: Call }
  interface Answer { readonly candidates: ReadonlyArray<{ readonly content?: { readonly parts?: readonly Part[] } }> }
  const parts = (text: string): string => (JSON.parse(text) as Answer).candidates.flatMap(({ content }) => content?.parts ?? [])
    .map(({ text: words = '', functionCall: call }) => call === undefined ? words : called(call)).join('')
  const events = (text: string): string => text.split('\n').filter(line => line.startsWith('data: ')).map(line => parts(line.slice(6))).join('')
  const chats = (stream: boolean): Ask => async (more, model) => lines(await post('/api/chat', { model, messages: question, stream, ...more }))
  const contents = [{ role: 'user', parts: [{ text: 'hi' }] }]
  const generates: Ask = async (more, model) => parts(await post(`/v1beta/models/${model}:generateContent`, { contents, ...more }))
  const streams: Ask = async (more, model) => events(await post(`/v1beta/models/${model}:streamGenerateContent?alt=sse`, { contents, ...more }))
  return {
    Ollama: row(chats(false), chats(true), chatTools, { format: schema }, { messages: [{ role: 'user', content: 'hi', images: ['iVBORw0KGgoAAAAA'] }] }),
    Gemini: row(generates, streams, { tools: [{ functionDeclarations: [{ name: 'weather', parameters }] }] },
      { generationConfig: { responseMimeType: 'application/json', responseJsonSchema: schema } },
      { contents: [{ role: 'user', parts: [{ text: 'hi' }, { inlineData: { mimeType: 'image/png', data: 'AAAA' } }] }] })
  }
}

function cells (openai: OpenAI, anthropic: Anthropic): Readonly<Record<string, Row>> {
  const spoken = ({ choices: [choice] }: OpenAI.ChatCompletion): string => {
    const call = choice!.message.tool_calls?.[0] as OpenAI.ChatCompletionMessageFunctionToolCall | undefined
    return call === undefined ? choice!.message.content! : `${call.function.name}(${call.function.arguments})`
  }
  const chats: Ask = async (more, model) => spoken(await openai.chat.completions.create({ model, messages: question, ...more }))
  const streams: Ask = async (more, model) =>
    spoken(await openai.chat.completions.stream({ model, messages: question, ...more }).finalChatCompletion())
  const answered = ({ output, output_text: text }: OpenAI.Responses.Response): string => {
    const call = output.find(item => item.type === 'function_call')
    return call === undefined ? text : `${call.name}(${call.arguments})`
  }
  const responds: Ask = async (more, model) => answered(await openai.responses.create({ model, input: 'hi', ...more }))
  const respondsStreaming: Ask = async (more, model) =>
    answered(await openai.responses.stream({ model, input: 'hi', ...more }).finalResponse())
  const told = ({ content: [block] }: Anthropic.Message): string => {
    if (block?.type === 'tool_use') return `${block.name}(${JSON.stringify(block.input)})`
    return block?.type === 'text' ? block.text : JSON.stringify(block)
  }
  const asked = { max_tokens: 100, messages: question }
  const asks: Ask = async (more, model) => told(await anthropic.messages.create({ model, ...asked, ...more }))
  const asksStreaming: Ask = async (more, model) =>
    told(await anthropic.messages.stream({ model, ...asked, ...more }).finalMessage())
  const responseTools = { tools: [{ type: 'function', name: 'weather', parameters, strict: false }] }
  const messageTools = { tools: [{ name: 'weather', input_schema: parameters }] }
  return {
    chat: row(chats, streams, chatTools, { response_format: { type: 'json_schema', json_schema: { name: 'state', schema, strict: true } } },
      { messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }, { type: 'image_url', image_url: { url: png } }] }] }),
    completions: {
      plain: async model => (await openai.completions.create({ model, prompt: 'hi' })).choices[0]!.text,
      streamed: async model => {
        let text = ''
        for await (const { choices } of await openai.completions.create({ model, prompt: 'hi', stream: true })) text += choices[0]!.text
        return text
      }
    },
    responses: row(responds, respondsStreaming, responseTools, { text: { format: { type: 'json_schema', name: 'state', schema, strict: true } } },
      { input: [{ role: 'user', content: [{ type: 'input_text', text: 'hi' }, { type: 'input_image', image_url: png }] }] }),
    messages: row(asks, asksStreaming, messageTools, { output_config: { format: { type: 'json_schema', schema } } },
      { messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }] }] })
  }
}

/** What stands behind a name, by the paths that it knows. `e2e/` has the real engines. */
const openaiPaths = { '/chat/completions': chat, '/completions': completions, '/responses': responses }
const engines: Readonly<Record<string, Speaks>> = {
  // its own Messages API passes over the shape that is asked for
  'llama-server': { ...openaiPaths, '/messages': body => messages(body.replace('"output_config"', '"passed_over"')) },
  'the embedded engine': { '/chat/completions': chat, '/completions': completions },
  'an OpenAI upstream': openaiPaths,
  'an upstream of chat alone': { '/chat/completions': chat },
  'an Anthropic upstream': { '/messages': messages }
}
const models = { 'an OpenAI upstream': 'gpt-9', 'an upstream of chat alone': 'small-9', 'an Anthropic upstream': 'claude-9' } as const

/** It takes no pictures; `e2e/` has its refusals. */
const SIGHTLESS = 'the embedded engine'
/** Legacy completions are not translated: the refusal of the upstream passes. */
const refused = new Set(['completions on an upstream of chat alone', 'completions on an Anthropic upstream'])

t.test('every dialect on every engine, in the clients of their makers', async t => {
  const tables: string[] = []
  for (const [name, id] of Object.entries(models)) {
    const upstream = await createFakeEngine()
    t.teardown(() => upstream.close())
    const missing = id === 'claude-9'
      ? { type: 'error', error: { type: 'not_found_error', message: 'Not found' } }
      : { error: { message: 'Invalid URL', type: 'invalid_request_error', param: null, code: null } }
    upstream.answer(speaking(engines[name]!, [id], missing))
    tables.push(upstreamTable(id.split('-')[0]!, `${upstream.origin}/v1`, id === 'claude-9' ? { auth_style: 'anthropic', auth_value_env: 'CLAUDE_KEY' } : {}))
  }
  const surface = (path: string): { path: string, streaming: true, body: 'json' } => ({ path: `/v1${path}`, streaming: true, body: 'json' })
  const small = { chat: surface('/chat/completions'), completions: surface('/completions') }
  const slot = (provider: string): string => `type = "llm"\nprovider = "${provider}"\ndevice = "cpu"\n[model]\ndefault = "fake-model"\n`
  const gateway = await wireGateway(t, {
    plugins: [
      responseRoutes, messageRoutes, hub, library, pull, ollama, gemini,
      createFakeProviderPlugin({ name: 'whole', surfaces: { ...small, responses: surface('/responses'), messages: { ...surface('/messages'), ignores: body => body.has('output_config') } } }),
      createFakeProviderPlugin({ name: 'small', surfaces: small })
    ],
    files: {
      'etc/svc/upstreams.toml': tables.join(''),
      'etc/svc/api.env': 'CLAUDE_KEY=sk-0123456789abcdef\n',
      'etc/svc/slots/llama.toml': slot('whole'),
      'etc/svc/slots/embedded.toml': slot('small')
    }
  })
  const slots = { 'llama-server': 'llama', 'the embedded engine': 'embedded' } as const
  for (const [name, one] of Object.entries(slots)) {
    await gateway.slots.ensureReady(one, new AbortController().signal)
    gateway.runtime.engine(one).answer(speaking(engines[name]!, [], {}))
  }
  await gateway.fetch('/v1/models')
  const openai = new OpenAI({ baseURL: `${gateway.baseUrl}/v1`, apiKey: 'anything', maxRetries: 0 })
  const anthropic = new Anthropic({ baseURL: gateway.baseUrl, apiKey: 'anything', maxRetries: 0 })
  for (const [dialect, row] of Object.entries({ ...cells(openai, anthropic), ...otherCells(gateway.baseUrl) })) {
    for (const [engine, model] of Object.entries({ ...slots, ...models })) {
      await t.test(`${dialect} on ${engine}`, async t => {
        for (const [kind, ask] of Object.entries(row) as Array<[Kind, Cell]>) {
          if (kind === 'image' && engine === SIGHTLESS) continue
          if (refused.has(`${dialect} on ${engine}`)) t.match(await ask(model).then(() => null, (error: unknown) => error), { status: 404 }, kind)
          else t.equal(await ask(model), expected[kind], kind)
        }
      })
    }
  }
})
