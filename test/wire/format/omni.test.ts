import OpenAI, { BadRequestError } from 'openai'
import t, { type Test } from 'tap'
import imageCache from '../../../plugins/api/images/index.js'
import imageRoutes from '../../../plugins/v1/images/index.js'
import omni from '../../../plugins/v1/omni/index.js'
import { createFakeProviderPlugin, type EngineScript, type SeenRequest } from '../../../kernel/testing/index.js'
import { streamed, toolEngine, type SeenChat, type Turn } from './tool-engine.js'
import { until, wireGateway, type WireGateway, type WireOptions } from '../wire-gateway.js'

const JSON_TYPE = { 'content-type': 'application/json' }
const json = (value: unknown): EngineScript => ({ headers: JSON_TYPE, chunks: [JSON.stringify(value)] })

function slot (type: string, more = '', model = 'fake-model', provider = 'fake'): string {
  return `type = "${type}"\nprovider = "${provider}"\ndevice = "cpu"\n${more}[model]\ndefault = "${model}"\n`
}

/** Surfaces that the fake provider of the other tests does not have. */
const media = createFakeProviderPlugin({
  name: 'media',
  surfaces: {
    image: { path: '/v1/images/generations', streaming: false, body: 'json' },
    transcription: { path: '/v1/audio/transcriptions', streaming: false, body: 'multipart' }
  }
})

const all: Readonly<Record<string, string>> = {
  eyes: `${slot('llm', 'system_prompt = "You see."\n', 'eye-model')}labels = ["vision"]\n`,
  img: `${slot('image', '', 'sdxl-turbo', 'media')}[image]\ndefault_size = "512x512"\ndefault_steps = 3\n`,
  tts: slot('tts', 'default_voice = "ann"\ndefault_speed = 1.5\n', 'tts-model'),
  stt: slot('transcription', '', 'stt-model', 'media'),
  embed: slot('embedding', '', 'embed-model'),
  rerank: slot('reranking', '', 'rerank-model')
}

const engines: Readonly<Record<string, (request: SeenRequest) => EngineScript>> = {
  img: ({ body }) => {
    const { n: length = 1 } = JSON.parse(body.toString()) as { n?: number }
    return json({ created: 1, data: Array.from({ length }, () => ({ b64_json: Buffer.from('png').toString('base64') })) })
  },
  tts: () => ({ headers: { 'content-type': 'audio/mpeg' }, chunks: [Buffer.from([1, 2, 3]), Buffer.from([4])] }),
  stt: () => json({ text: 'hello from the tape' }),
  embed: ({ body }) => {
    const { input } = JSON.parse(body.toString()) as { input: string[] }
    return json({ data: input.map((text, index) => ({ index, embedding: [text.length, 1] })) })
  },
  rerank: () => json({ results: [{ index: 1, relevance_score: 0.9 }, { index: 0, relevance_score: 0.2 }] })
}

interface Rig {
  readonly gateway: WireGateway
  readonly client: OpenAI
  /** What the caller's engine was asked. */
  readonly seen: SeenChat[]
  /** Makes the caller's model say this from now on. */
  says (turns: readonly Turn[], cut?: number): void
  /** Body of the last request to a slot's engine. */
  asked (slot: string): unknown
}

async function rig (t: Test, others: readonly string[], { files = {}, svc = '', onStart, ...rest }: WireOptions = {}): Promise<Rig> {
  const seen: SeenChat[] = []
  let script = toolEngine([{ content: 'nothing' }], seen)
  const gateway = await wireGateway(t, {
    ...rest,
    plugins: [media, omni, imageRoutes, imageCache],
    svc,
    files: {
      'etc/svc/slots/agent.toml': `${slot('llm')}labels = ["tool-calling"]\n`,
      ...Object.fromEntries(others.map(name => [`etc/svc/slots/${name}.toml`, all[name]!])),
      'var/lib/svc/registry/registry.toml': ['fake-model', 'eye-model', 'sdxl-turbo', 'tts-model', 'stt-model', 'embed-model', 'rerank-model']
        .map(id => `[models.${id}]\npath = "/dev/null"\n`).join(''),
      ...files
    },
    onStart: async started => {
      const { slot, engine } = started
      engine.answer(slot === 'agent' ? request => script(request) : engines[slot] ?? (() => json(whole(`${slot} says so`))))
      await onStart?.(started)
    }
  })
  return {
    gateway,
    client: new OpenAI({ baseURL: `${gateway.baseUrl}/v1`, apiKey: 'anything', maxRetries: 0 }),
    seen,
    says: (turns, cut) => {
      seen.length = 0
      script = toolEngine(turns, seen, cut)
    },
    asked: name => {
      const body = gateway.runtime.engine(name).requests.at(-1)!.body.toString()
      return body.startsWith('{') ? JSON.parse(body) as unknown : body
    }
  }
}

function whole (content: string): object {
  return { id: 'x', object: 'chat.completion', created: 1, model: 'm', choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }] }
}

const ask = { model: 'svc/agent', messages: [{ role: 'user', content: 'do it' }], omni: true }

/** What the client gets, whole or put together from a stream. */
async function answer (rig: Rig, more: object = {}): Promise<OpenAI.ChatCompletion & { _svc?: { omni: object } }> {
  const body = { ...ask, ...more } as unknown as OpenAI.ChatCompletionCreateParamsNonStreaming
  return await rig.client.chat.completions.create(body)
}

async function stream (rig: Rig, more: object = {}): Promise<{ text: string, chunks: OpenAI.ChatCompletionChunk[] }> {
  const body = { ...ask, ...more, stream: true } as unknown as OpenAI.ChatCompletionCreateParamsStreaming
  const chunks: OpenAI.ChatCompletionChunk[] = []
  for await (const chunk of await rig.client.chat.completions.create(body)) chunks.push(chunk)
  return { text: chunks.map(chunk => chunk.choices[0]?.delta.content ?? '').join(''), chunks }
}

/** What the model was told in the last round, by call. */
function told (rig: Rig): unknown[] {
  return rig.seen.at(-1)!.messages.filter(({ role }) => role === 'tool').map(({ content }) => JSON.parse(content as string) as unknown)
}

const toolNames = (chat: SeenChat | undefined): string[] => (chat?.tools ?? []).map(tool => tool.function.name)

t.test('each tool, with an answer in one piece and as a stream', async t => {
  const it = await rig(t, Object.keys(all), {
    files: { 'etc/svc/slots/helper.toml': slot('llm', 'system_prompt = "Be brief."\n') }
  })
  const photo = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }
  const tape = { type: 'input_audio', input_audio: { data: Buffer.from('RIFF').toString('base64'), format: 'wav' } }
  const attached = { messages: [{ role: 'user', content: [{ type: 'text', text: 'look' }, photo, tape] }] }
  const system = (content: string): object => ({ role: 'system', content })
  const cases: Array<[name: string, args: object, result: object, slot: string, asked: object | RegExp, more?: object]> = [
    ['generate_image', { prompt: 'a cat', n: 2 }, { images: [/^\/api\/images\/cache\/[\w-]+\.png$/, /^\/api\/images\//] }, 'img',
      { model: 'sdxl-turbo', prompt: 'a cat', size: '512x512', n: 2, steps: 3 }],
    ['text_to_speech', { input: 'hi' }, { content_type: 'audio/mpeg', byte_length: 4, note: /delivered/ }, 'tts',
      { model: 'tts-model', input: 'hi', voice: 'ann', speed: 1.5 }],
    ['transcribe_audio', { audio: 'audio_1', language: 'en' }, { text: 'hello from the tape' }, 'stt',
      /name="model"\r\n\r\nstt-model\r\n.*name="language"\r\n\r\nen\r\n.*filename="audio.wav"\r\nContent-Type: audio\/wav\r\n\r\nRIFF\r\n/s, attached],
    ['analyze_image', { image: 'image_1', question: 'what?' }, { content: 'eyes says so' }, 'eyes',
      { model: 'eye-model', messages: [{ role: 'user', content: [{ type: 'text', text: 'what?' }, photo] }] }, attached],
    ['embed_text', { input: ['a', 'abc'] }, { dimensions: 2, similarity: [[1, 0.8944], [0.8944, 1]], embeddings: [[1, 1], [3, 1]] }, 'embed',
      { model: 'embed-model', input: ['a', 'abc'], encoding_format: 'float' }],
    ['rerank_documents', { query: 'q', documents: ['x', 'y'], top_n: 2 },
      { results: [{ index: 1, relevance_score: 0.9, document: 'y' }, { index: 0, relevance_score: 0.2, document: 'x' }] }, 'rerank',
      { model: 'rerank-model', query: 'q', documents: ['x', 'y'], top_n: 2 }],
    ['route_to_chat', { target: 'helper', prompt: 'think', context: 'facts' }, { content: 'helper says so' }, 'helper',
      { model: 'fake-model', messages: [system('Be brief.'), { role: 'user', content: 'think\n\nContext\nfacts' }] }]
  ]
  for (const [name, args, result, slot, asked, more = {}] of cases) {
    for (const how of ['whole', 'stream']) {
      it.says([{ calls: [[name, args]] }, { content: 'Done it.' }])
      const text = how === 'whole' ? (await answer(it, more)).choices[0]!.message.content : (await stream(it, more)).text
      t.equal(text, 'Done it.', `${name}, ${how}`)
      t.match(told(it), [result], `${name}: what the model is told`)
      t.match(it.asked(slot), asked, `${name}: what the engine is asked`)
      t.equal(it.seen.length, 2)
      t.strictSame(toolNames(it.seen[0]), [
        'generate_image', 'text_to_speech', 'transcribe_audio', 'analyze_image', 'embed_text', 'rerank_documents', 'route_to_chat'
      ])
    }
  }
  t.match(it.seen[0]!.tools!.at(-1), { type: 'function', function: { parameters: { type: 'object', properties: { target: { enum: ['eyes', 'helper'] } }, required: ['target', 'prompt'] } } })
})

t.test('who gets tools, and who goes the plain way', async t => {
  const it = await rig(t, ['embed'], { files: { 'etc/svc/slots/mute.toml': slot('llm', '', 'eye-model'), 'etc/svc/slots/off.toml': `${slot('tts')}`.replace('[model]', 'enabled = false\n[model]') } })
  const plain = async (what: string, more: object): Promise<void> => {
    it.says([{ content: 'plain' }])
    await answer(it, more)
    t.strictSame(toolNames(it.seen[0]), [], what)
    t.notOk('omni' in it.seen[0]!, `${what}: the key stays here`)
  }
  await plain('not asked for', { omni: undefined })
  await plain('asked for with something else', { omni: 'true' })
  await plain('asked not to use tools', { tool_choice: 'none' })
  t.equal((await answer(it, { model: 'mute' })).choices[0]!.message.content, 'mute says so')
  t.notMatch(it.asked('mute'), { tools: [] }, 'a model that does not call tools')
  it.says([{ content: 'with' }])
  await answer(it)
  t.strictSame(toolNames(it.seen[0]), ['embed_text', 'route_to_chat'], 'only tools that an enabled slot serves')

  const alone = await rig(t, [])
  alone.says([{ content: 'alone' }])
  t.equal((await answer(alone)).choices[0]!.message.content, 'alone')
  t.notOk('tools' in alone.seen[0]!, 'no slot for any tool: one plain call')
  alone.says([{ content: 'tagged' }])
  await alone.gateway.slots.update('agent', { model: { labels: [] } })
  await alone.gateway.slots.create('embed', { type: 'embedding', provider: 'fake', device: 'cpu', model: { default: 'fake-model' } })
  await answer(alone)
  t.strictSame(toolNames(alone.seen[0]), [], 'the label is gone')
})

t.test('the usage of an answer is that of all its rounds', async t => {
  const it = await rig(t, ['embed'])
  it.says([{ calls: [['embed_text', { input: ['a'] }]] }, { content: 'one more', calls: [['embed_text', { input: ['b'] }]] }, { content: 'done' }])
  t.strictSame((await answer(it)).usage, { prompt_tokens: 9, completion_tokens: 6, total_tokens: 15 })
  it.says([{ content: 'at once' }])
  t.match((await answer(it)).usage, { total_tokens: 5 })
})

t.test('a slot that failed is not offered', async t => {
  const it = await rig(t, ['embed', 'rerank'], {
    onStart: ({ slot }) => {
      if (slot === 'embed') throw new Error('no')
    }
  })
  await it.gateway.slots.load('embed').catch(() => {})
  t.equal(it.gateway.slots.status('embed').state, 'error')
  it.says([{ content: 'x' }])
  await answer(it)
  t.notOk(toolNames(it.seen[0]).includes('embed_text'))
  t.ok(toolNames(it.seen[0]).includes('rerank_documents'))
})

t.test('several calls run side by side, and a call that fails is told to the model', async t => {
  const it = await rig(t, ['embed', 'rerank', 'tts'])
  for (const name of ['embed', 'rerank']) await it.gateway.slots.ensureReady(name, new AbortController().signal)
  const [embed, rerank] = ['embed', 'rerank'].map(name => it.gateway.runtime.engine(name))
  let arrived = 0
  let bothThere = (): void => {}
  const both = new Promise<void>(resolve => { bothThere = resolve })
  for (const engine of [embed!, rerank!]) {
    const wait = { headAfterMs: Infinity }
    engine.answer(() => {
      if (++arrived === 2) bothThere()
      return wait
    })
  }
  it.says([{ calls: [['embed_text', { input: ['a'] }], ['rerank_documents', { query: 'q', documents: ['a'] }]] }, { content: 'x' }])
  const controller = new AbortController()
  const pending = it.client.chat.completions.create(ask as never, { signal: controller.signal }).catch(() => 'gone')
  await both
  t.pass('both engines work at the same time')
  controller.abort()
  await until(() => embed!.active === 0 && rerank!.active === 0, 'both are free when the client leaves')
  t.equal(await pending, 'gone')
  await until(() => it.gateway.gateway.inference().dispatcher.active.size === 0, 'nothing is left')

  embed!.answer({ status: 500, headers: JSON_TYPE, chunks: [JSON.stringify({ error: { message: `out of ${'x'.repeat(1000)}` } })] })
  rerank!.answer(json({ nonsense: true }))
  it.says([{
    calls: [
      ['embed_text', { input: ['a'] }], ['rerank_documents', { query: 'q', documents: ['a'] }], ['embed_text', '{"input": ['], ['embed_text', { input: 3 }],
      ['no_such_tool', {}], ['text_to_speech', { input: '' }]
    ]
  }, { content: 'sorry' }])
  t.equal((await answer(it)).choices[0]!.message.content, 'sorry')
  const results = told(it) as Array<{ error: string }>
  t.match(results, [{ error: /^status 500: out of x{493}$/ }, { error: /results/ }, { error: /not JSON/ }, { error: /^the arguments do not fit: `input` must be .*$/ }, { error: /no tool 'no_such_tool'/ }, { error: /^the arguments do not fit: `input` must be text with a length of at least 1$/ }])
  t.notMatch(JSON.stringify(results), /Invalid input|✖|Too small/, 'in words of ours')
  it.says([{ calls: Array.from({ length: 20 }, () => ['text_to_speech', { input: 'x' }] as const) }, { content: 'many' }])
  await answer(it)
  t.strictSame((told(it) as Array<{ error?: string }>).map(({ error }) => error !== undefined), Array.from({ length: 20 }, (_, i) => i >= 16), 'sixteen at a time')
})

t.test('eight rounds and no more', async t => {
  const it = await rig(t, ['embed'])
  for (const how of ['whole', 'stream'] as const) {
    it.says([{ content: 'once more', calls: [['embed_text', { input: ['a'] }]] }])
    const finish = how === 'whole' ? (await answer(it)).choices[0] : (await stream(it)).chunks.at(-1)!.choices[0]
    t.equal(it.seen.length, 8, how)
    t.strictSame(it.seen.map(chat => chat.tool_choice), [...Array.from({ length: 7 }, () => undefined), 'none'], 'the last one is asked for words')
    t.equal(finish!.finish_reason, 'stop', 'calls that nobody runs are not handed out')
    t.notOk('tool_calls' in ('message' in finish! ? finish.message : finish!.delta))
  }
})

t.test('calls of the client\'s own tools go to the client', async t => {
  const it = await rig(t, ['embed', 'rerank'])
  const weather = { type: 'function' as const, function: { name: 'weather', parameters: { type: 'object', properties: {} } } }
  const own = { type: 'function' as const, function: { name: 'embed_text', parameters: { type: 'object', properties: {} } } }
  const more = { tools: [weather, own], tool_choice: 'required' }
  const calls = [['rerank_documents', { query: 'q', documents: ['a'] }], ['weather', { city: 'x' }], ['embed_text', { mine: 1 }]] as const
  for (const how of ['whole', 'stream'] as const) {
    it.says([{ calls: [['rerank_documents', { query: 'q', documents: ['a'] }]] }, { content: 'hm', calls }])
    const last = how === 'whole'
      ? (await answer(it, more)).choices[0]!.message.tool_calls
      : (await stream(it, more)).chunks.flatMap(chunk => chunk.choices[0]?.delta.tool_calls ?? [])
    t.match(last, [{ function: { name: 'weather', arguments: '{"city":"x"}' } }, { function: { name: 'embed_text', arguments: '{"mine":1}' } }], `${how}: go to the client, without ours`)
    t.strictSame(toolNames(it.seen[0]), ['weather', 'embed_text', 'rerank_documents'], 'a name of the client\'s is the client\'s')
    t.strictSame(it.seen.map(chat => chat.tool_choice), ['required', undefined], 'what it says of the choice holds for the first round')
  }
})

t.test('a stream with tool calls is one answer of all rounds', async t => {
  const it = await rig(t, ['embed', 'tts'], { svc: '[dispatcher]\nhold_headers_s = 0.01\nping_interval_s = 0.02\n' })
  const turns: Turn[] = [
    { reasoning: 'I need numbers', content: 'Let me see. ', calls: [['embed_text', { input: ['a', 'é€😀'] }], ['text_to_speech', { input: 'hi' }]] },
    { reasoning: 'and now', content: 'They are alike.' }
  ]
  const raw = async (): Promise<string> =>
    await (await it.gateway.fetch('/v1/chat/completions', { method: 'POST', body: JSON.stringify({ ...ask, stream: true }) })).text()

  t.test('what is said comes as it is said, the calls stay here, and all is one answer', async t => {
    it.says(turns)
    const { text, chunks } = await stream(it, { stream_options: { include_usage: true } })
    t.equal(text, 'Let me see. \n\nThey are alike.')
    t.strictSame([...new Set(chunks.map(({ id }) => id))], ['chatcmpl-1'])
    const reasons = chunks.map(({ choices }) => choices[0]?.finish_reason ?? null).filter(reason => reason !== null)
    t.strictSame(reasons, ['stop'])
    t.equal(chunks.filter(({ choices }) => choices[0]?.delta.role !== undefined).length, 1, 'one opening')
    t.notOk(chunks.some(({ choices }) => choices[0]?.delta.tool_calls !== undefined))
    t.match(chunks.at(-1), { choices: { length: 0 }, usage: { prompt_tokens: 2, completion_tokens: 2, total_tokens: 4 } }, 'what both rounds took')
    const deltas = chunks.map(({ choices }) => choices[0]?.delta as { audio?: object } | undefined)
    const sound = deltas.map(delta => delta?.audio).filter(audio => audio !== undefined)
    t.match(sound, [{ data: Buffer.from([1, 2, 3, 4]).toString('base64'), transcript: 'hi', id: /^audio-/ }])
    t.match(it.seen[1]!.messages.at(-3), { role: 'assistant', content: 'Let me see. ', reasoning_content: 'I need numbers', tool_calls: [{ id: 'call-0' }, { id: 'call-1' }] })
    t.match(await raw(), /data: \[DONE\]\n\n$/)
  })

  t.test('however the engine\'s bytes are cut', async t => {
    it.says(turns)
    const expected = (await raw()).replaceAll(': ping\n\n', '').replace(/audio-[\w-]+|"expires_at":\d+/g, '')
    for (const cut of [1, 2, 7, 50, 1000]) {
      it.says(turns, cut)
      t.equal((await raw()).replaceAll(': ping\n\n', '').replace(/audio-[\w-]+|"expires_at":\d+/g, ''), expected, `in pieces of ${cut}`)
    }
  })

  t.test('an answer without calls arrives byte for byte', async t => {
    const turn = { reasoning: 'easy', content: 'Four, of course.' }
    it.says([turn], 5)
    t.equal((await raw()).replaceAll(': ping\n\n', ''), streamed(turn, { id: 'chatcmpl-1', created: 1001, model: 'fake-model' }).join(''))
  })

  t.test('while a tool works there are signs of life', async t => {
    it.gateway.runtime.engine('embed').answer({ ...json({ data: [{ embedding: [1] }] }), headAfterMs: 100 })
    it.says([{ calls: [['embed_text', { input: ['a'] }]] }, { content: 'late' }])
    t.match(await raw(), /finish_reason":null.*\n\n(: ping\n\n)+data: .*late/)
  })

  t.test('a failure between rounds ends the answer with its error', async t => {
    const call: Turn = { content: 'Well. ', calls: [['embed_text', { input: ['a'] }]] }
    const no = '{"error":{"code":400,"message":"too long","type":"exceed_context_size_error"}}'
    it.says([call, { refuse: { status: 400, body: no } }])
    const later = await raw()
    t.match(later, /"error":\{"code":"dispatch.upstream_failed","message":"slot 'agent' answered 400 after its tools had run: too long"/)
    t.notMatch(later, /\[DONE\]/)
    const broken = toolEngine([call])
    it.gateway.runtime.engine('agent').answer(request => ({ ...broken(request), dieAfter: 3 }))
    t.match(await raw(), /"Well. ".*"error":\{"code":"dispatch.upstream_failed"/s)
    it.gateway.runtime.engine('agent').answer({ headers: { 'content-type': 'text/event-stream' }, chunks: ['data: {"error":{"message":"slot died"}}\n\n'] })
    t.equal((await raw()).replaceAll(': ping\n\n', ''), 'data: {"error":{"message":"slot died"}}\n\n', 'what an engine tells inside its stream')
  })
})

t.test('an answer without streaming carries what the tools made', async t => {
  const it = await rig(t, ['embed', 'tts'])
  it.says([{ content: 'plain' }])
  const untouched = await it.gateway.fetch('/v1/chat/completions', { method: 'POST', body: JSON.stringify(ask) })
  t.notMatch(await untouched.text(), /_svc/, 'without calls the engine\'s bytes are the answer')
  it.says([{ calls: [['text_to_speech', { input: 'hi' }], ['embed_text', { input: 1 }]] }, { content: 'spoken' }])
  const done = await answer(it)
  t.match(done.choices[0]!.message, { content: 'spoken', audio: { data: Buffer.from([1, 2, 3, 4]).toString('base64'), transcript: 'hi' } })
  t.match(done._svc, { omni: { caller_slot: 'agent', rounds: 2, tools: [{ name: 'text_to_speech', ok: true, content_type: 'audio/mpeg' }, { name: 'embed_text', ok: false }] } })
  it.says([{ calls: [['embed_text', { input: ['a'] }]] }, { refuse: { status: 400, body: '{"error":{"code":400,"message":"too long"}}' } }])
  const refused = await answer(it).then(() => null, (error: unknown) => error)
  t.ok(refused instanceof BadRequestError, 'a later round that is refused')
  t.match(refused, { code: 400, message: /too long/ })
  t.match(await (await it.gateway.chat({ omni: true, model: 'nobody' })).json(), { error: { code: 'model.not_found' } })
  const no = '{"error":{"code":400,"message":"no"}}'
  for (const stream of [false, true]) {
    it.says([{ refuse: { status: 400, body: no } }])
    const first = await it.gateway.fetch('/v1/chat/completions', { method: 'POST', body: JSON.stringify({ ...ask, stream }) })
    t.strictSame([first.status, await first.text()], [400, no], 'a first round that is refused: the engine\'s own words')
  }
})

t.test('what neither the model nor a tool takes is the engine\'s to refuse', async t => {
  const it = await rig(t, ['embed'])
  const photo = { role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }] }
  const refused = await answer(it, { messages: [photo] }).then(() => null, (error: unknown) => error)
  t.match(refused, { status: 400, message: /image input is not supported/ })
})

t.test('cancelling ends the loop wherever it is', async t => {
  const it = await rig(t, ['embed'])
  const list = () => it.gateway.gateway.inference().requests
  for (const [where, turns, slow] of [
    ['in a tool', [{ calls: [['embed_text', { input: ['a'] }]] }], 'embed'], ['in an answer', [{ content: 'x' }], 'agent']
  ] as const) {
    it.says(turns)
    await it.gateway.slots.ensureReady(slow, new AbortController().signal)
    const engine = it.gateway.runtime.engine(slow)
    engine.answer({ headAfterMs: Infinity })
    const id = `cancel-${slow}`
    const response = it.gateway.fetch('/v1/chat/completions', { method: 'POST', body: JSON.stringify(ask), headers: { 'x-request-id': id } })
    await until(() => engine.active === 1, `it is ${where}`)
    t.strictSame(list().list().map(request => [request.id, request.slot]), [[id, null], [id, slow]], 'the request and what it waits for')
    t.equal(list().cancel(id), 2)
    t.match(await (await response).json(), { error: { code: 'request.cancelled' } })
    await until(() => engine.active === 0 && list().list().length === 0, 'all is over')
  }
})

t.test('a picture takes the GPU from the caller\'s model', async t => {
  const onGpu = (text: string): string => text.replace('device = "cpu"', 'device = "gpu-vulkan"')
  const it = await rig(t, [], {
    deviceNodes: ['/dev/dri/renderD128'],
    files: { 'etc/svc/slots/agent.toml': `${onGpu(slot('llm'))}labels = ["tool-calling"]\n`, 'etc/svc/slots/img.toml': onGpu(all.img!) }
  })
  const { gpu } = it.gateway.gateway.inference()
  const turns: Turn[] = [{ calls: [['generate_image', { prompt: 'a cat' }]] }, { content: 'Here it is.' }]
  for (const how of ['whole', 'stream'] as const) {
    it.says(turns)
    const text = how === 'whole' ? (await answer(it)).choices[0]!.message.content : (await stream(it)).text
    t.equal(text, 'Here it is.', `${how}: it is asked back once the picture is there`)
    t.equal(gpu.status().mode, 'llm')
  }
  t.match(it.gateway.runtime.started.map(engine => engine.slot), ['agent', 'img', 'agent', 'img', 'agent'])

  for (const how of ['whole', 'stream'] as const) {
    it.says(turns)
    const started = it.gateway.runtime.started.length
    const pending = how === 'whole' ? answer(it) : stream(it)
    await until(() => it.gateway.runtime.started.length > started, 'the image engine is up')
    await gpu.pin(true)
    const result = await pending
    const text = 'text' in result ? result.text : result.choices[0]!.message.content
    t.match(text, /^!\[\]\(\/api\/images\/cache\/[\w-]+\.png\)$/, `${how}: a GPU that is pinned stays there, and the picture is the answer`)
    if ('_svc' in result) t.match(result._svc, { omni: { caller_slot_unavailable: true } })
    await gpu.pin(false)
    gpu.switchTo('llm')
    await gpu.settled(new AbortController().signal)
  }
})
