import { once } from 'node:events'
import { request } from 'node:http'
import t from 'tap'
import { demoSentence } from '../../../../plugins/services/demo/sentence.js'
import { eventually } from '../../../kernel/runtime/support.js'
import { modelFile, post, speaksTheSentence, startEmbedded, stream } from './support.js'

interface SlotView { readonly id: number, readonly is_processing: boolean }

async function busy (url: string): Promise<number> {
  return (await (await fetch(`${url}/slots`)).json() as SlotView[]).filter(slot => slot.is_processing).length
}

const schema = (shape: object): object => ({ type: 'json_schema', json_schema: { name: 'answer', schema: shape } })
const deep = Array.from({ length: 70 }).reduce<object>(inner => ({ type: 'array', items: inner }), { type: 'null' })
const clock = { type: 'function', function: { name: 'clock' } }
const weather = {
  type: 'function', function: { name: 'weather', parameters: { type: 'object', properties: { city: { enum: ['Bern', 'Oslo'] } }, required: ['city'] } }
}

interface Said {
  readonly choices: ReadonlyArray<{
    readonly finish_reason: string
    readonly message: {
      readonly content: string | null
      readonly tool_calls?: ReadonlyArray<{ readonly function: { readonly arguments: string } }>
    }
  }>
}

const gauge = async (url: string, name: string): Promise<number> =>
  Number(new RegExp(`^llamacpp:${name} (\\S+)$`, 'm').exec(await (await fetch(`${url}/metrics`)).text())?.[1])

t.test('the demo model answers completions and chats as llama-server does', async t => {
  const { url } = await startEmbedded(t, [
    '--model', modelFile(t), '--alias', 'svc-demo', '--ctx-size', '512', '--parallel', '2', '--kv-unified', '--device', 'none', '--metrics'
  ])
  await speaksTheSentence(t, url)

  await t.test('several prompts and several answers', async t => {
    const both = await post(url, '/v1/completions', { prompt: ['a', 'b', 'c'], max_tokens: 2 })
    t.match(both.json.choices, [0, 1, 2].map(index => ({ index, text: 'Hello! I ', finish_reason: 'length' })))
    const twice = { messages: [{ role: 'user', content: 'x' }], n: 2, max_tokens: 1 }
    const { chunks } = await stream(url, '/v1/chat/completions', twice)
    const ended = chunks.flatMap(chunk => chunk.choices).filter(choice => choice.finish_reason !== null)
    t.same(ended.map(choice => choice.index).sort(), [0, 1])
    t.match((await post(url, '/v1/completions', { prompt: [1, 93, 475], max_tokens: 1 })).json, { usage: { prompt_tokens: 3 } }, 'tokens as they are')
    t.match(await post(url, '/v1/completions', { prompt: Array.from({ length: 300 }, () => 'a'), n: 8 }), { status: 400, json: { error: { message: /'prompt': more than 2048 answers/ } } })
  })

  await t.test('what was read is read once', async t => {
    const messages = [{ role: 'user', content: 'a rather long question that stays the same' }]
    const { json: first } = await post(url, '/v1/chat/completions', { messages, max_tokens: 1 })
    const { json: second } = await post(url, '/v1/chat/completions', { messages, max_tokens: 1 })
    t.match(first, { usage: { prompt_tokens: Number }, timings: { cache_n: Number } })
    t.ok((second.timings as { cache_n: number }).cache_n > 10)
  })

  await t.test('an answer ends where the context does', async t => {
    const answer = await post(url, '/v1/completions', { prompt: '5'.repeat(500) })
    t.match(answer.json, { choices: [{ finish_reason: 'length' }], usage: { prompt_tokens: 501, completion_tokens: 11, total_tokens: 512 } })
  })

  await t.test('model list, properties, tokenizer and metrics are those of its model', async t => {
    const get = async (path: string): Promise<unknown> => (await fetch(`${url}${path}`)).json()
    t.match(await get('/v1/models'), { object: 'list', data: [{ id: 'svc-demo', object: 'model', meta: { n_ctx: 512, n_ctx_train: 32_768 } }] })
    t.match(await get('/props'), { total_slots: 2, model_alias: 'svc-demo' })
    t.match(await post(url, '/tokenize', { content: 'where 東', add_special: true, with_pieces: true }),
      { json: { tokens: [{ id: 1 }, { piece: 'wh' }, { piece: 'er' }, { piece: 'e' }] } })
    t.same((await post(url, '/detokenize', { tokens: [93, 475] })).json, { content: 'Whe' })
    t.same((await post(url, '/apply-template', { messages: [{ role: 'user', content: 'x' }] })).json, { prompt: '<|user|>x<|assistant|>' })
    t.ok(await gauge(url, 'tokens_predicted_total') > demoSentence.split(' ').length)
  })

  await t.test('an answer has the shape that a schema asks for, whatever the model would say', async t => {
    const shape = {
      type: 'object',
      properties: {
        mood: { enum: ['good', 'so "so"'] },
        count: { type: 'integer', minimum: -12, maximum: 108 },
        share: { type: 'number', minimum: 0, maximum: 1 },
        tags: { type: 'array', items: { type: 'string', maxLength: 3 }, minItems: 1, maxItems: 2 },
        when: { type: 'string', format: 'date' },
        more: { anyOf: [{ $ref: '#/$defs/more' }, { type: 'null' }] },
        note: { type: 'string', maxLength: 2 }
      },
      required: ['mood', 'count', 'share', 'tags', 'when', 'more'],
      additionalProperties: false,
      $defs: { more: { allOf: [{ properties: { id: { const: 7 } } }, { required: ['id'] }] } }
    }
    for (let seed = 0; seed < 12; seed++) {
      const body = { messages: [{ role: 'user', content: 'x' }], response_format: schema(shape), seed, temperature: 1.5 }
      const text = seed % 2 === 0
        ? ((await post(url, '/v1/chat/completions', body)).json as unknown as Said).choices[0]!.message.content!
        : (await stream(url, '/v1/chat/completions', body)).text
      const value = JSON.parse(text) as Record<string, unknown> & { count: number, share: number, tags: string[] }
      t.match(value, { mood: /^(good|so "so")$/, when: /^\d{4}-\d\d-\d\d$/, more: value.more === null ? null : { id: 7 } })
      t.ok(Number.isInteger(value.count) && value.count >= -12 && value.count <= 108, text)
      t.ok(value.share >= 0 && value.share <= 1 && value.tags.length >= 1 && value.tags.length <= 2, text)
      t.same(Object.keys(value).filter(key => key !== 'note'), shape.required)
    }
    const said = await post(url, '/v1/completions', { prompt: 'x', grammar: 'root ::= "yes" | "no"', n: 2 })
    t.match(said.json.choices, [{ text: /^(yes|no)$/, finish_reason: 'stop' }, { text: /^(yes|no)$/ }])
    t.match((await post(url, '/v1/completions', { prompt: 'x', json_schema: { const: { a: 1 } } })).json.choices, [{ text: '{"a":1}' }])
    t.match((await post(url, '/v1/chat/completions', { messages: [{ role: 'user', content: 'x' }], response_format: { type: 'json_object' }, max_tokens: 1 }))
      .json, { choices: [{ message: { content: '{' }, finish_reason: 'length' }] })
  })

  await t.test('a forced tool is called, whole and streamed', async t => {
    const body = { messages: [{ role: 'user', content: 'x' }], tools: [clock, weather], seed: 3 }
    const named = { ...body, tool_choice: { type: 'function', function: { name: 'weather' } } }
    const whole = (await post(url, '/v1/chat/completions', named)).json as unknown as Said
    t.match(whole.choices, [{ finish_reason: 'tool_calls', message: { content: /^$/, tool_calls: [{ id: /^\w{32}$/, type: 'function', function: { name: 'weather' } }] } }])
    t.match(JSON.parse(whole.choices[0]!.message.tool_calls![0]!.function.arguments), { city: /^(Bern|Oslo)$/ })
    const any = (await post(url, '/v1/chat/completions', { ...body, tool_choice: 'required' })).json as unknown as Said
    t.match(any.choices[0]!.message.tool_calls, [{ function: { name: /^(weather|clock)$/ } }])

    const { chunks, last } = await stream(url, '/v1/chat/completions', named)
    const deltas = chunks.flatMap(chunk => chunk.choices[0]?.delta?.tool_calls ?? [])
    t.match(deltas[0], { index: 0, id: /^\w{32}$/, type: 'function', function: { name: 'weather' } })
    t.match(JSON.parse(deltas.map(delta => delta.function.arguments).join('')), { city: /^(Bern|Oslo)$/ })
    t.equal(deltas.filter(delta => delta.function.name !== undefined).length, 1)
    t.same([chunks.flatMap(chunk => chunk.choices).at(-1)?.finish_reason, last], ['tool_calls', '[DONE]'])
    const cut = (await post(url, '/v1/chat/completions', { ...named, max_tokens: 40 })).json as unknown as Said
    t.equal(cut.choices[0]!.finish_reason, 'length')
    const prompt = async (choice: string): Promise<unknown> => (await post(url, '/apply-template', { ...body, tool_choice: choice })).json.prompt
    t.match(await prompt('auto'), /"name":"weather".*<\|user\|>x/, 'a template without tools gets them as words')
    t.equal(await prompt('none'), '<|user|>x<|assistant|>')
  })

  await t.test('the embedded engine refuses a text request that it cannot serve', async t => {
    const user = { role: 'user', content: 'x' }
    const chat = '/v1/chat/completions'
    const table: Array<[path: string, body: unknown, status: number, message: RegExp]> = [
      [chat, '{bad', 400, /not JSON/],
      [chat, [], 400, /object/],
      [chat, {}, 400, /'messages': is required/],
      [chat, { messages: 'x' }, 400, /'messages': must be an array/],
      [chat, { messages: [{ role: 'user' }] }, 400, /messages\.0\.content.*required/],
      [chat, { messages: [{ content: 'x' }] }, 400, /messages\.0\.role/],
      [chat, { messages: [{ role: 'user', content: [{ type: 'image_url' }] }] }, 400, /images need llama-server/],
      [chat, { messages: [user], temperature: 'x' }, 400, /'temperature'.*number/],
      [chat, { messages: [user], stream: 'x' }, 400, /'stream'.*boolean/],
      [chat, { messages: [user], stop: 5 }, 400, /'stop'/],
      [chat, { messages: [user], top_logprobs: 2 }, 400, /'top_logprobs': requires logprobs/],
      [chat, { messages: [user], logprobs: true, top_logprobs: 21 }, 400, /'top_logprobs'.*20/],
      [chat, { messages: [user], logprobs: true, tools: [clock], stream: true }, 400, /'logprobs': is not supported with tools and stream/],
      [chat, { messages: [user], logprobs: true, tools: [clock], tool_choice: 'required' }, 400, /'logprobs'.*forced tool/],
      [chat, { messages: [user], n: 9 }, 400, /'n': must be at most 8/],
      [chat, { messages: [user], functions: [{ name: 'x' }] }, 400, /'functions': is not supported/],
      [chat, { messages: [user], reasoning_format: 'x' }, 400, /'reasoning_format': must be none/],
      [chat, { messages: [user], tools: [{ type: 'function' }] }, 400, /'tools\.0\.function'/],
      ['/v1/completions', { prompt: 'x', best_of: 2 }, 400, /'best_of'.*with n/],
      ['/v1/completions', { prompt: 'x', echo: true }, 400, /'echo': is not supported/],
      ['/v1/completions', { prompt: 'x', suffix: 'y' }, 400, /'suffix': is not supported/],
      ['/v1/completions', { prompt: 'x', logprobs: 21 }, 400, /'logprobs'.*20/],
      [chat, { messages: [user], response_format: { type: 'xml' } }, 400, /'response_format\.?\w*': must be of type text, json_object or json_schema/],
      [chat, { messages: [user], response_format: schema({ type: 'string', pattern: 'a+' }) }, 400, /'pattern': is not supported/],
      [chat, { messages: [user], response_format: schema({ properties: { a: { type: 'money' } } }) }, 400, /'properties\.a': type 'money' is unknown/],
      [chat, { messages: [user], response_format: schema({ $ref: '#/$defs/none' }) }, 400, /points to nothing/],
      [chat, { messages: [user], response_format: schema({ $ref: '#' }) }, 400, /grammar cannot be parsed/],
      [chat, { messages: [user], response_format: schema({ allOf: [{ $ref: '#' }, { $ref: '#' }] }) }, 400, /too large/],
      [chat, { messages: [user], response_format: schema(deep) }, 400, /deeper than 64/],
      [chat, { messages: [user], response_format: schema({ type: 'integer', minimum: 3, maximum: 2 }) }, 400, /no number lies/],
      [chat, { messages: [user], json_schema: {}, grammar: 'root ::= "a"' }, 400, /Only one of/],
      [chat, { messages: [user], tool_choice: 'required' }, 400, /'tool_choice': is required without any tools/],
      [chat, { messages: [user], tool_choice: 'always' }, 400, /'tool_choice': must be auto/],
      [chat, { messages: [user], tools: [weather], tool_choice: { type: 'function', function: { name: 'nope' } } }, 400, /no tool is called 'nope'/],
      ['/v1/completions', { prompt: 'x', grammar: 'root ::= nowhere' }, 400, /grammar cannot be parsed/],
      ['/v1/completions', {}, 400, /'prompt': is required/],
      ['/v1/completions', { prompt: 5 }, 400, /'prompt'/],
      ['/v1/completions', { prompt: [] }, 400, /'prompt'/],
      ['/v1/completions', { prompt: [99_999] }, 400, /not in the vocabulary/],
      ['/v1/embeddings', { input: 'x' }, 501, /Start it with `--embeddings`/],
      ['/v1/rerank', { query: 'x', documents: ['y'] }, 501, /Start it with `--reranking`/],
      ['/v1/responses', { input: 'x' }, 501, /install llama-server/],
      ['/nope', {}, 404, /File Not Found/],
      ['/health', {}, 404, /File Not Found/]
    ]
    for (const [path, body, status, message] of table) {
      const answer = await post(url, path, body)
      t.match(answer, { status, json: { error: { code: status, message, type: String } } }, `${path} ${JSON.stringify(body)}`)
    }
    t.match(await post(url, '/v1/completions', { prompt: '5'.repeat(600), stream: true }),
      { status: 400, json: { error: { type: 'exceed_context_size_error', n_prompt_tokens: 601, n_ctx: 512 } } })
    const final = await fetch(`${url}${chat}`, { method: 'POST', body: JSON.stringify({ messages: [user], response_format: { type: 'xml' } }) })
    t.same([final.status, final.headers.get('x-should-retry')], [400, 'false'], 'for good: no client need ask again')
    t.equal(await busy(url), 0)
  })
})

t.test('a model that does not end', async t => {
  const { url } = await startEmbedded(t, [
    '--model', modelFile(t, { sentence: `again ${'a'.repeat(8192)}`, cycle: true }), '--ctx-size', '1024', '--context-shift'
  ])
  const open = async (streaming: boolean): Promise<ReturnType<typeof request>> => {
    const call = request(`${url}/v1/completions`, { method: 'POST' })
    call.on('error', () => { /* ends it */ })
    call.end(JSON.stringify({ prompt: 'x', stream: streaming }))
    return Promise.resolve(call)
  }

  await t.test('a client that leaves ends it within a token, streaming or not', async t => {
    for (const streaming of [true, false]) {
      const call = await open(streaming)
      if (streaming) {
        const [response] = await once(call, 'response') as [NodeJS.ReadableStream]
        await once(response, 'data')
      }
      await eventually('it works', async () => await busy(url) === 1)
      call.destroy()
      await eventually('it stops', async () => await busy(url) === 0)
    }
    t.pass('both')
  })

  await t.test('a reader that stops reading stops the engine, not its memory', async t => {
    const call = await open(true)
    const [response] = await once(call, 'response') as [NodeJS.ReadableStream]
    response.pause()
    const seen: number[] = []
    await eventually('it waits for the reader', async () => {
      const [slot] = await (await fetch(`${url}/slots`)).json() as Array<{ n_past: number }>
      seen.push(slot!.n_past)
      const last = seen.slice(-3)
      return last.length === 3 && last.every(tokens => Number.isInteger(tokens) && tokens === last[0])
    })
    t.ok(new Set(seen).size > 1, 'it had worked before')
    t.equal(await busy(url), 1, 'the answer goes on when it reads again')
    call.destroy()
  })

  await t.test('requests wait in line, and one that leaves the line is gone', async t => {
    const first = await open(true)
    await eventually('one works', async () => await busy(url) === 1)
    const leaves = await open(false)
    await eventually('one waits', async () => await gauge(url, 'requests_deferred') === 1)
    const stays = post(url, '/v1/completions', { prompt: 'x', max_tokens: 2 })
    await eventually('two wait', async () => await gauge(url, 'requests_deferred') === 2)
    leaves.destroy()
    await eventually('one waits again', async () => await gauge(url, 'requests_deferred') === 1)
    first.destroy()
    t.match((await stays).json, { choices: [{ text: /^again a+ $/ }] })
    t.equal(await busy(url), 0)
  })
})

t.test('characters of several tokens, several at a time', async t => {
  const bytes = [...Buffer.from('東京')].map(byte => `<0x${byte.toString(16).toUpperCase()}>`)
  const model = modelFile(t, { sentence: ['Tokyo', 'is', ...new Set(bytes), 'indeed'].join(' ') })
  const { url } = await startEmbedded(t, ['--model', model, '--parallel', '3', '--ctx-size', '600'])
  const said = `Tokyo is ${Buffer.from([...new Set(Buffer.from('東京'))]).toString()}indeed`
  const answers = await Promise.all([1, 2, 3].map(() => stream(url, '/v1/completions', { prompt: 'x' })))
  for (const { chunks, text } of answers) {
    t.equal(text, said)
    t.notMatch(chunks.map(chunk => chunk.choices[0]?.text).join('|'), /\uFFFD/)
  }
  t.match((await post(url, '/v1/completions', { prompt: '5'.repeat(200) })).json, { error: { n_ctx: 200 } }, 'each has its share of the context')
})
