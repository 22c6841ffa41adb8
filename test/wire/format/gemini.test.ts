import t, { type Test } from 'tap'
import gemini from '../../../plugins/dialects/gemini/index.js'
import apiActivity from '../../../plugins/api/activity/index.js'
import apiRequests from '../../../plugins/api/requests/index.js'
import vectors from '../../../plugins/v1/vectors/index.js'
import { readUntil, until } from '../wire-gateway.js'
import { chatOnlyGateway, type ChatOnly, type Said } from './chat-only.js'

type Json = Record<string, unknown>

const SECRET = 'AIza-secret-of-the-user'
const contents = [{ role: 'user', parts: [{ text: 'hi' }] }]
const weather = { name: 'weather', description: 'of a place', parameters: { type: 'OBJECT', properties: { place: { type: 'STRING', nullable: true } }, required: ['place'] } }
const chatWeather = {
  type: 'function',
  function: { name: 'weather', description: 'of a place', parameters: { type: 'object', properties: { place: { type: ['string', 'null'] } }, required: ['place'] } }
}

/** Thinks, talks, and calls two tools, whose arguments come in pieces. */
const busy: Said = {
  deltas: [
    { reasoning_content: 'hm' }, { reasoning_content: ', so' }, { content: 'Let me ' }, { content: 'look é🎈.' },
    { tool_calls: [{ index: 0, id: 'call_a', type: 'function', function: { name: 'weather', arguments: '' } }] },
    { tool_calls: [{ index: 0, function: { arguments: '{"place":' } }] }, { tool_calls: [{ index: 0, function: { arguments: '"Rome"}' } }] },
    { tool_calls: [{ index: 1, id: 'call_b', type: 'function', function: { name: 'weather', arguments: '{"place":"Oslo"}' } }] }
  ],
  finish: 'tool_calls'
}
const calls = [{ functionCall: { id: 'call_a', name: 'weather', args: { place: 'Rome' } } }, { functionCall: { id: 'call_b', name: 'weather', args: { place: 'Oslo' } } }]
const usageMetadata = {
  promptTokenCount: 20, candidatesTokenCount: 4, totalTokenCount: 27, cachedContentTokenCount: 12, thoughtsTokenCount: 3
}

interface Asking extends ChatOnly {
  post (target: string, body: object): Promise<Response>
}

async function asking (t: Test, svc = ''): Promise<Asking> {
  const chat = await chatOnlyGateway(t, [vectors, apiActivity, apiRequests, gemini], svc)
  return {
    ...chat,
    post: (target, body) => chat.gateway.fetch(`/v1beta/models/${target}`, {
      method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json', 'x-goog-api-key': SECRET }
    })
  }
}

const eventsOf = async (response: Response): Promise<Json[]> => (await response.text()).split('\n\n').filter(text => text !== '')
  .map(text => JSON.parse(text.replace(/^data: /, '')) as Json)

t.test('Gemini\'s words over an engine and an upstream that speak chat completions', async t => {
  const { gateway, says, asked, post, upstream } = await asking(t)
  const showing = { thinkingConfig: { includeThoughts: true } }
  const thinking = { contents, tools: [{ functionDeclarations: [weather] }], generationConfig: showing }

  for (const model of ['agent', 'gpt-9', 'far/gpt-9']) {
    await t.test(`thoughts, text and calls of ${model} come whole, as events and as a list`, async t => {
      says(busy)
      const parts = [{ text: 'hm, so', thought: true }, { text: 'Let me look é🎈.' }, ...calls]
      const whole = await (await post(`${model}:generateContent`, thinking)).json() as Json
      t.match(whole, { candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP', index: 0 }], usageMetadata, modelVersion: 'scripted', responseId: /./ })
      const pieces = [[{ text: 'hm', thought: true }], [{ text: ', so', thought: true }], [{ text: 'Let me ' }], [{ text: 'look é🎈.' }], calls]
      for (const [query, read] of [['?alt=sse', eventsOf], ['', async (response: Response) => await response.json() as Json[]]] as const) {
        const response = await post(`${model}:streamGenerateContent${query}`, thinking)
        t.match(response.headers.get('content-type'), query === '' ? 'application/json' : 'text/event-stream')
        const told = await read(response)
        t.strictSame(told.map(({ candidates }) => (candidates as Array<{ content: Json }>)[0]!.content.parts), pieces)
        t.match(told.at(-1), { candidates: [{ finishReason: 'STOP' }], usageMetadata })
      }
      t.match(asked(), { stream: true, stream_options: { include_usage: true }, tools: [chatWeather] })
      const quiet = await (await post(`${model}:generateContent`, { contents })).json() as Json
      t.strictSame((quiet.candidates as Array<{ content: Json }>)[0]!.content.parts, parts.slice(1), 'thoughts are shown to those who ask')
    })
  }

  t.test('a conversation with everything in it reaches the model, in either spelling', async t => {
    says({ deltas: [{ content: 'ok' }] })
    const call = (id: string, name: string, args: string): object => ({ id, type: 'function', function: { name, arguments: args } })
    const body = {
      systemInstruction: { parts: [{ text: 'Be brief.' }, { text: 'Be kind.' }] },
      contents: [
        { role: 'user', parts: [{ text: 'what is it?' }, { inlineData: { mimeType: 'image/png', data: 'AAAA' } }, { inlineData: { mimeType: 'text/plain', data: 'aGk=' } }] },
        { role: 'model', parts: [{ text: 'well', thought: true }, { text: 'I ask.' }, { functionCall: { name: 'weather', args: { place_name: 'Rome' } }, thoughtSignature: 's' }, { functionCall: { name: 'time', args: {} } }] },
        { role: 'user', parts: [{ functionResponse: { name: 'time', response: { output: 'noon' } } }, { functionResponse: { name: 'weather', response: { sky: 'blue' } } }, { text: 'go on' }] }
      ],
      tools: [{ functionDeclarations: [weather, { name: 'time', parametersJsonSchema: { type: 'object' } }] }, { googleSearch: {} }],
      toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['weather'] } },
      safetySettings: [{ category: 'X', threshold: 'Y' }],
      generationConfig: {
        temperature: 0.5, topP: 0.9, topK: 20, maxOutputTokens: 50, stopSequences: ['END'], seed: 7, presencePenalty: 0.2, frequencyPenalty: 0.3, candidateCount: 1,
        responseMimeType: 'application/json', responseSchema: { type: 'OBJECT', properties: { n: { type: 'INTEGER', minimum: 1 } }, propertyOrdering: ['n'] },
        responseLogprobs: true, logprobs: 2, thinkingConfig: { thinkingLevel: 'LOW' }, mediaResolution: 'LOW'
      },
      labels: { a: 'b' }
    }
    const answer = await post('agent:generateContent', body)
    t.equal(answer.status, 200, await answer.clone().text())
    t.match(answer.headers.get('x-svc-warning'), /safetySettings: left out.*labels: not known.*mediaResolution: not known.*tools\.1: 'googleSearch' was left out/)
    const wanted = {
      model: 'fake-model',
      messages: [
        { role: 'system', content: 'Be brief.\n\nBe kind.' },
        { role: 'user', content: [{ type: 'text', text: 'what is it?' }, { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }, { type: 'text', text: 'hi' }] },
        { role: 'assistant', content: 'I ask.', reasoning_content: 'well', tool_calls: [call('call_0', 'weather', '{"place_name":"Rome"}'), call('call_1', 'time', '{}')] },
        { role: 'tool', tool_call_id: 'call_1', content: 'noon' },
        { role: 'tool', tool_call_id: 'call_0', content: '{"sky":"blue"}' },
        { role: 'user', content: 'go on' }
      ],
      tools: [chatWeather],
      tool_choice: { type: 'function', function: { name: 'weather' } },
      temperature: 0.5, top_p: 0.9, top_k: 20, max_tokens: 50, stop: ['END'], seed: 7, presence_penalty: 0.2, frequency_penalty: 0.3,
      response_format: { type: 'json_schema', json_schema: { name: 'answer', schema: { type: 'object', properties: { n: { type: 'integer', minimum: 1 } } }, strict: true } },
      logprobs: true, top_logprobs: 2,
      chat_template_kwargs: { enable_thinking: true },
      reasoning_effort: 'low'
    }
    t.strictSame(asked(), wanted)
    const free = new Set(['args', 'response', 'properties', 'parametersJsonSchema'])
    const snaked = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(snaked)
      if (typeof value !== 'object' || value === null) return value
      return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`), free.has(key) ? inner : snaked(inner)]))
    }
    t.equal((await post('agent:generateContent', snaked(body) as object)).status, 200)
    t.strictSame(asked(), wanted, 'snake_case')
    await post('gpt-9:generateContent', { contents: body.contents, generationConfig: { thinkingConfig: { thinkingBudget: 20_000 } } })
    t.match(asked(), { reasoning_effort: 'high', chat_template_kwargs: undefined, messages: { 1: { reasoning_content: undefined } } })
    await post('agent:generateContent', { contents, generationConfig: { thinkingConfig: { thinkingBudget: 0 } } })
    t.match(asked(), { chat_template_kwargs: { enable_thinking: false } })
  })

  t.test('a failure has Google\'s shape, before a stream and within it', async t => {
    for (const [target, body, status, error] of [
      ['agent:generateContent', { contents: 3 }, 400, { status: 'INVALID_ARGUMENT', message: /'contents'/, details: [{ reason: 'validation.invalid' }] }],
      ['agent:generateContent', { contents, cachedContent: 'caches/1' }, 400, { message: /'cachedContent'/ }],
      ['agent:generateContent', { contents, generationConfig: { candidateCount: 2 } }, 400, { message: /candidateCount/ }],
      ['agent:generateContent', { contents, generationConfig: { responseModalities: ['AUDIO'] } }, 400, { message: /responseModalities/ }],
      ['agent:generateContent', { contents, generationConfig: { responseMimeType: 'text/x.enum' } }, 400, { message: /responseMimeType/ }],
      ['agent:generateContent', { contents: [{ parts: [{ fileData: { fileUri: 'https://generativelanguage.googleapis.com/v1beta/files/a', mimeType: 'image/png' } }] }] }, 400, { message: /fileData/ }],
      ['agent:generateContent', { contents: [{ parts: [{ executableCode: {} }] }] }, 400, { message: /'executableCode'/ }],
      ['nobody:generateContent', { contents }, 404, { status: 'NOT_FOUND', code: 404, message: /nobody/ }],
      ['nobody:countTokens', { contents }, 404, { status: 'NOT_FOUND' }],
      ['agent:predictLongRunning', {}, 501, { status: 'UNIMPLEMENTED', message: /predictLongRunning/ }],
      ['agent', {}, 404, { message: /give a model and a method/ }]
    ] as const) {
      const refused = await post(target, body)
      t.equal(refused.status, status, `${target} ${JSON.stringify(body)}`)
      t.match(await refused.json(), { error })
    }
    t.match(await (await gateway.fetch('/v1beta/models/agent', { method: 'DELETE' })).json(), { error: { code: 405, status: 'INVALID_ARGUMENT' } }, 'also where no route matched')
    says({ deltas: [{ content: 'a' }, { content: 'b' }] }, { dieAfter: 3 })
    t.match((await eventsOf(await post('agent:streamGenerateContent?alt=sse', { contents }))).at(-1), { error: { code: 502, status: 'INTERNAL' } })
    t.match((await (await post('agent:streamGenerateContent', { contents })).json() as Json[]).at(-1), { error: { code: 502 } }, 'the list is whole all the same')
    says({ deltas: [{ content: 'a' }, { content: 'b' }] }, { dieAfter: 6 })
    for (const read of [eventsOf, async (response: Response) => await response.json() as Json[]]) {
      const query = read === eventsOf ? '?alt=sse' : ''
      const whole = await read(await post(`agent:streamGenerateContent${query}`, { contents }))
      t.match(whole.at(-1), { candidates: [{ finishReason: 'STOP' }], error: undefined }, 'an engine that dies behind its answer takes nothing from it')
    }
    says({ deltas: [] }, { status: 429, headers: { 'content-type': 'application/json' }, chunks: ['{"error":{"message":"slow down"}}'] })
    const refused = await post('agent:generateContent', { contents })
    t.equal(refused.status, 429)
    t.match(await refused.json(), { error: { code: 429, message: 'slow down', status: 'RESOURCE_EXHAUSTED' } })
  })

  t.test('models are listed page by page, and tokens counted or estimated', async t => {
    const list = async (query: string): Promise<Json> => await (await gateway.fetch(`/v1beta/models${query}`)).json() as Json
    const { models } = await list('') as { models: Json[] }
    t.match(models.find(({ name }) => name === 'models/agent'), { displayName: /^agent/, supportedGenerationMethods: ['generateContent', 'countTokens'] })
    const first = await list('?pageSize=1')
    t.equal((first.models as Json[]).length, 1)
    t.strictSame((await list(`?pageSize=1000&pageToken=${String(first.nextPageToken)}`)).models, models.slice(1))
    t.match(await list('?pageToken=x'), { error: { message: /pageToken/ } })
    t.match(await (await gateway.fetch('/v1beta/models/agent')).json(), { name: 'models/agent' })
    const counted = await post('agent:countTokens', { generateContentRequest: { contents } })
    t.equal(counted.headers.get('x-svc-estimate'), 'totalTokens')
    const { totalTokens } = await counted.json() as { totalTokens: number }
    t.ok(totalTokens > 3 && totalTokens < 20, String(totalTokens))
    gateway.runtime.engine('agent').answer(({ url, body }) => {
      const headers = { 'content-type': 'application/json' }
      if (url === '/apply-template') return { headers, chunks: ['{"prompt":"<s>hi"}'] }
      return url === '/tokenize' && body.includes('<s>hi') ? { headers, chunks: ['{"tokens":[1,2,3,4,5]}'] } : { status: 404 }
    })
    const exact = await post('agent:countTokens', { contents })
    t.equal(exact.headers.get('x-svc-estimate'), null)
    t.match(await exact.json(), { totalTokens: 5 })
  })

  t.test('a client that leaves ends the work of the engine', async () => {
    for (const query of ['?alt=sse', '']) {
      says({ deltas: [{ content: 'a' }] }, { hangAfter: 2 })
      await readUntil(await post(`agent:streamGenerateContent${query}`, { contents }), text => text.includes('"a"'))
      await until(() => gateway.runtime.engine('agent').active === 0, 'the engine is left')
    }
  })

  await t.test('a key of the client is taken and goes nowhere', async t => {
    says({ deltas: [{ content: 'ok' }] }, { headAfterMs: 50 })
    for (const model of ['agent', 'gpt-9']) {
      const asking = post(`${model}:generateContent?key=${SECRET}`, { contents })
      await until(() => upstream.engine.active + gateway.runtime.engine('agent').active > 0, 'it is asked')
      t.notMatch(await (await gateway.fetch('/api/requests')).text(), SECRET)
      t.equal((await asking).status, 200)
    }
    const wrong = await gateway.fetch(`/v1beta/models/agent:generateContent?key=${SECRET}`, { method: 'POST', body: '{' })
    t.notMatch(await wrong.text(), SECRET)
    await (await gateway.fetch(`/v1beta/nothing?key=${SECRET}`)).text()
    const seen = [...upstream.engine.requests, ...gateway.runtime.engine('agent').requests].map(({ url, headers, body }) => `${url} ${JSON.stringify(headers)} ${body.toString()}`)
    t.ok(seen.length > 4)
    t.notMatch(seen.join('\n'), SECRET)
    t.notMatch(await (await gateway.fetch('/api/activity')).text(), SECRET)
    const logged = gateway.logs.flatMap(({ message, fields }) => [message, ...Object.values(fields).map(String)])
    t.notMatch(logged.join('\n'), SECRET)
  })
})

t.test('while a cold slot loads, a list is kept alive with blank lines before it', async t => {
  const { gateway, post } = await asking(t, '[dispatcher]\nhold_headers_s = 0\nping_interval_s = 0.02\n')
  const { start } = gateway.runtime
  for (const isWell of [true, false]) {
    await gateway.slots.unload('agent')
    let go = (): void => {}
    const loads = new Promise<void>(resolve => { go = resolve })
    gateway.runtime.start = async (...given) => {
      await loads
      if (!isWell) throw new Error('no such image')
      await start.apply(gateway.runtime, given)
    }
    const reader = (await post('agent:streamGenerateContent', { contents })).body!.getReader()
    let text = ''
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
      text += Buffer.from(chunk.value).toString()
      if (text.length > 2) go()
    }
    t.match(text, /^\n+\[/)
    const told = JSON.parse(text) as Json[]
    if (isWell) t.match(told.at(-1), { candidates: [{ finishReason: 'STOP' }] })
    else t.match(told, [{ error: { status: /./ } }])
  }
})
