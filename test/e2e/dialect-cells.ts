import type Anthropic from '@anthropic-ai/sdk'
import type OpenAI from 'openai'
import type { Test } from 'tap'
import { demoSentence } from '../../plugins/services/demo/sentence.js'
import { anthropic, openai } from './text-surfaces.js'

/** What one way to ask ends up with: text, or a call as `name(arguments)`. */
type Ask = (tools: boolean) => Promise<string>

interface Dialect {
  readonly plain: Ask
  readonly streamed: Ask
  /** Legacy completions know none. */
  readonly tools: boolean
}

const parameters = { type: 'object' as const, properties: { input: { type: 'array', items: { type: 'string' } } } }
const messages = [{ role: 'user' as const, content: 'Who are you?' }]
const called = (name: string, args: unknown): string => `${name}(${JSON.stringify(args)})`

type Json = Record<string, unknown>

interface OllamaCall { readonly function: { readonly name: string, readonly arguments: unknown } }
interface Line { readonly message: { readonly content: string, readonly tool_calls?: readonly OllamaCall[] } }
interface Candidates {
  readonly candidates: ReadonlyArray<{ readonly content?: { readonly parts?: readonly Json[] } }>
}

function posting (url: string): (path: string, body: object) => Promise<string> {
  return async (path, body) => {
    const response = await fetch(`${url}${path}`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
    if (response.status !== 200) throw new Error(`${path}: ${response.status} ${await response.text()}`)
    return response.text()
  }
}

/** An answer of Ollama's, whole or streamed. */
function linesOf (text: string): readonly Line[] {
  return text.trimEnd().split('\n').map(line => JSON.parse(line) as Line)
}

/** A stream of Gemini's. */
function eventsOf (text: string): readonly Candidates[] {
  return text.split('\n').filter(line => line.startsWith('data: ')).map(line => JSON.parse(line.slice('data: '.length)) as Candidates)
}

function partsOf (answers: readonly Candidates[]): readonly Json[] {
  return answers.flatMap(({ candidates }) => candidates[0]?.content?.parts ?? [])
}

/** Every dialect at one gateway: `agent` says the sentence, `caller` calls the tool that it is given. */
function dialectsAt (url: string): Readonly<Record<string, Dialect>> {
  const [client, claude] = [openai(url), anthropic(url)]
  const model = (tools: boolean): string => tools ? 'caller' : 'agent'
  const post = posting(url)
  const chat = (tools: boolean): OpenAI.ChatCompletionCreateParamsNonStreaming => ({
    model: model(tools), messages, temperature: 0, ...tools ? { tools: [{ type: 'function' as const, function: { name: 'embed_text', parameters } }] } : {}
  })
  const spoken = ({ choices: [choice] }: OpenAI.ChatCompletion): string => {
    const call = choice!.message.tool_calls?.[0] as OpenAI.ChatCompletionMessageFunctionToolCall | undefined
    return call === undefined ? choice!.message.content! : called(call.function.name, JSON.parse(call.function.arguments))
  }
  const response = (tools: boolean): OpenAI.Responses.ResponseCreateParamsNonStreaming => ({
    model: model(tools), input: 'Who are you?', temperature: 0,
    ...tools ? { tools: [{ type: 'function' as const, name: 'embed_text', parameters, strict: false }] } : {}
  })
  const answered = ({ output, output_text: text }: OpenAI.Responses.Response): string => {
    const call = output.find(item => item.type === 'function_call')
    return call === undefined ? text : called(call.name, JSON.parse(call.arguments))
  }
  const message = (tools: boolean): Anthropic.MessageCreateParamsNonStreaming => ({
    model: model(tools), max_tokens: 200, messages, ...tools ? { tools: [{ name: 'embed_text', input_schema: parameters }] } : {}
  })
  const told = (content: ReadonlyArray<{ readonly type: string }>): string => {
    const call = content.find(block => block.type === 'tool_use') as { name: string, input: unknown } | undefined
    return call === undefined ? content.map(block => 'text' in block ? block.text : '').join('') : called(call.name, call.input)
  }
  const ollama = (tools: boolean): object => ({
    model: model(tools), messages, options: { temperature: 0 }, ...tools ? { tools: [{ type: 'function', function: { name: 'embed_text', parameters } }] } : {}
  })
  const linesSaid = (lines: readonly Line[]): string => {
    const call = lines.flatMap(({ message }) => message.tool_calls ?? [])[0]
    return call === undefined ? lines.map(line => line.message.content).join('') : called(call.function.name, call.function.arguments)
  }
  const gemini = (tools: boolean): object => ({
    contents: [{ role: 'user', parts: [{ text: 'Who are you?' }] }], generationConfig: { temperature: 0 },
    ...tools ? { tools: [{ functionDeclarations: [{ name: 'embed_text', parameters }] }] } : {}
  })
  interface Called { readonly name: string, readonly args: unknown }
  const partsSaid = (answers: readonly Candidates[]): string => {
    const parts = partsOf(answers)
    const call = parts.map(part => part.functionCall as Called | undefined).find(Boolean)
    return call === undefined ? parts.map(part => part.text ?? '').join('') : called(call.name, call.args)
  }
  return {
    'chat completions': {
      plain: async tools => spoken(await client.chat.completions.create(chat(tools))),
      streamed: async tools =>
        spoken(await client.chat.completions.stream({ ...chat(tools), stream: true }).finalChatCompletion()),
      tools: true
    },
    'completions': {
      plain: async () => (await client.completions.create({ model: 'agent', prompt: 'Once' })).choices[0]!.text,
      streamed: async () => {
        let text = ''
        const chunks = await client.completions.create({ model: 'agent', prompt: 'Once', stream: true })
        for await (const chunk of chunks) text += chunk.choices[0]?.text ?? ''
        return text
      },
      tools: false
    },
    'responses': {
      plain: async tools => answered(await client.responses.create(response(tools))),
      streamed: async tools => answered(await client.responses.stream({ ...response(tools), stream: true }).finalResponse()),
      tools: true
    },
    'messages': {
      plain: async tools => told((await claude.messages.create(message(tools))).content),
      streamed: async tools => told((await claude.messages.stream(message(tools)).finalMessage()).content),
      tools: true
    },
    'Ollama': {
      plain: async tools => linesSaid([JSON.parse(await post('/api/chat', { ...ollama(tools), stream: false })) as Line]),
      streamed: async tools => linesSaid(linesOf(await post('/api/chat', ollama(tools)))),
      tools: true
    },
    'Gemini': {
      plain: async tools => partsSaid([JSON.parse(await post(`/v1beta/models/${model(tools)}:generateContent`, gemini(tools))) as Candidates]),
      streamed: async tools => partsSaid(eventsOf(await post(`/v1beta/models/${model(tools)}:streamGenerateContent?alt=sse`, gemini(tools)))),
      tools: true
    }
  }
}

const shape = {
  type: 'object' as const, properties: { mood: { enum: ['good', 'bad'] } }, required: ['mood'], additionalProperties: false
}

const asShape = { name: 'state', schema: shape, strict: true }

/** What each dialect answers where it is asked for that shape. */
function shapedAt (url: string): Readonly<Record<string, (stream: boolean) => Promise<string>>> {
  const [client, claude, post] = [openai(url), anthropic(url).messages, posting(url)]
  return {
    'chat completions': async stream => {
      const body = { model: 'agent', messages, response_format: { type: 'json_schema' as const, json_schema: asShape } }
      const answer = stream
        ? await client.chat.completions.stream({ ...body, stream }).finalChatCompletion()
        : await client.chat.completions.create(body)
      return answer.choices[0]!.message.content!
    },
    'responses': async stream => {
      const body = { model: 'agent', input: 'Who are you?', text: { format: { type: 'json_schema' as const, ...asShape } } }
      const { responses } = client
      return (stream ? await responses.stream({ ...body, stream }).finalResponse() : await responses.create(body)).output_text
    },
    'messages': async stream => {
      const body = { model: 'agent', max_tokens: 200, messages, output_config: { format: { type: 'json_schema' as const, schema: shape } } }
      const { content } = stream ? await claude.stream(body).finalMessage() : await claude.create(body)
      return content.map(block => block.type === 'text' ? block.text : '').join('')
    },
    'Ollama': async stream => {
      const lines = linesOf(await post('/api/chat', { model: 'agent', messages, format: shape, stream }))
      return lines.map(({ message }) => message.content).join('')
    },
    'Gemini': async stream => {
      const contents = [{ role: 'user', parts: [{ text: 'Who are you?' }] }]
      const body = { contents, generationConfig: { responseMimeType: 'application/json', responseJsonSchema: shape } }
      const answers = stream
        ? eventsOf(await post('/v1beta/models/agent:streamGenerateContent?alt=sse', body))
        : [JSON.parse(await post('/v1beta/models/agent:generateContent', body)) as Candidates]
      return partsOf(answers).map(part => part.text ?? '').join('')
    }
  }
}

/** One column of the table of dialects and engines: each is asked whole and as a stream, for words, a call and a shape. */
export async function speaksEveryDialect (t: Test, url: string): Promise<void> {
  const call = called('embed_text', { input: ['one', 'two'] })
  for (const [name, dialect] of Object.entries(dialectsAt(url))) {
    for (const form of ['plain', 'streamed'] as const) {
      t.equal(await dialect[form](false), demoSentence, `${name}, ${form}`)
      if (dialect.tools) t.equal(await dialect[form](true), call, `${name}, ${form}, with a tool`)
    }
  }
  for (const [name, shaped] of Object.entries(shapedAt(url))) {
    for (const stream of [false, true]) {
      const answer = JSON.parse(await shaped(stream)) as Json
      t.match(answer, { mood: /^(?:good|bad)$/ }, `${name}, ${stream ? 'streamed' : 'plain'}, of a shape`)
      t.strictSame(Object.keys(answer), ['mood'])
    }
  }
}

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=='

/** A picture in each dialect, at an engine that has no eyes: refused for good, in the shape of the dialect, with the way out. */
export async function refusesPictures (t: Test, url: string): Promise<void> {
  const dataUrl = `data:image/png;base64,${PNG}`
  const asks: Readonly<Record<string, readonly [path: string, body: object]>> = {
    'chat completions': ['/v1/chat/completions', {
      model: 'agent', messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }, { type: 'image_url', image_url: { url: dataUrl } }] }]
    }],
    'responses': ['/v1/responses', {
      model: 'agent', input: [{ role: 'user', content: [{ type: 'input_text', text: 'hi' }, { type: 'input_image', image_url: dataUrl }] }]
    }],
    'messages': ['/v1/messages', {
      model: 'agent', max_tokens: 5,
      messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } }] }]
    }],
    'Ollama': ['/api/chat', { model: 'agent', messages: [{ role: 'user', content: 'hi', images: [PNG] }] }],
    'Gemini': ['/v1beta/models/agent:generateContent', {
      contents: [{ role: 'user', parts: [{ text: 'hi' }, { inlineData: { mimeType: 'image/png', data: PNG } }] }]
    }]
  }
  for (const [name, [path, body]] of Object.entries(asks)) {
    for (const more of [{}, { stream: true }]) {
      const said = { ...body, ...name === 'Gemini' ? {} : more }
      const answer = await fetch(`${url}${path}`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(said) })
      t.equal(answer.status, 400, name)
      t.match(await answer.text(), /images need llama-server|takes images/, name)
    }
  }
}
