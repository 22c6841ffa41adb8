import OpenAI, { APIUserAbortError, BadRequestError, NotFoundError } from 'openai'
import t from 'tap'
import { chatStream } from '../../../kernel/testing/index.js'
import { until, wireGateway, type WireGateway } from '../wire-gateway.js'

const messages = [{ role: 'user' as const, content: 'hi' }]

function clientOf (gateway: WireGateway): OpenAI {
  return new OpenAI({ baseURL: `${gateway.baseUrl}/v1`, apiKey: 'anything', maxRetries: 0 })
}

function failure (work: Promise<unknown>): Promise<unknown> {
  return work.then(() => null, (error: unknown) => error)
}

t.test('the openai client works unmodified', async t => {
  const gateway = await wireGateway(t)
  const client = clientOf(gateway)

  t.test('models: a cold gateway lists virtual names, a warm one the slot too', async t => {
    const cold = await client.models.list()
    t.strictSame(cold.data.map(model => model.id), ['svc/agent'])
    await client.chat.completions.create({ model: 'svc/agent', messages })
    const ids: string[] = []
    for await (const model of client.models.list()) ids.push(model.id)
    t.strictSame(ids, ['agent', 'svc/agent'])
    t.match(await client.models.retrieve('agent'), { id: 'agent', object: 'model', owned_by: 'svc', name: 'agent · Fake', context_length: 8192 })
    t.match(await client.models.retrieve('svc/agent'), { id: 'svc/agent', _svc: { virtual: true, resolves_to: 'fake-model', device: 'cpu' } })
    t.ok(await failure(client.models.retrieve('nobody')) instanceof NotFoundError)
  })

  t.test('chat, by slot name, virtual name and model id', async t => {
    for (const model of ['agent', 'svc/agent', 'fake-model']) {
      const answer = await client.chat.completions.create({ model, messages })
      t.equal(answer.choices[0]!.message.content, 'Hello there')
      t.equal(JSON.parse(gateway.runtime.engine('agent').requests.at(-1)!.body.toString()).model, 'fake-model')
    }
  })

  t.test('the OpenAI client reads a chat stream', async t => {
    const stream = await client.chat.completions.create({ model: 'agent', messages, stream: true })
    let text = ''
    for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? ''
    t.equal(text, 'Hello there')
  })

  t.test('the OpenAI client reads a text completion', async t => {
    gateway.runtime.engine('agent').answer({
      headers: { 'content-type': 'application/json' },
      chunks: ['{"id":"c","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"done","finish_reason":"stop"}]}']
    })
    t.equal((await client.completions.create({ model: 'agent', prompt: 'x' })).choices[0]!.text, 'done')
  })

  t.test('abort frees the engine', async t => {
    const engine = gateway.runtime.engine('agent')
    const words = Array.from({ length: 500 }, (_, i) => `w${i} `)
    engine.answer({ headers: { 'content-type': 'text/event-stream' }, chunks: chatStream(words), everyMs: 2 })
    const stream = await client.chat.completions.create({ model: 'agent', messages, stream: true })
    let seen = 0
    for await (const _ of stream) if (++seen === 3) stream.controller.abort()
    await until(() => engine.active === 0, 'the engine is free')
    engine.answer({ headAfterMs: Infinity })
    const controller = new AbortController()
    const pending = client.chat.completions.create({ model: 'agent', messages }, { signal: controller.signal })
    await until(() => engine.active === 1, 'the request has arrived')
    controller.abort()
    t.ok(await failure(pending) instanceof APIUserAbortError)
    await until(() => engine.active === 0, 'the engine is free again')
  })

  t.test('the OpenAI client raises the class of each refusal', async t => {
    t.ok(await failure(client.chat.completions.create({ model: 'nobody', messages })) instanceof NotFoundError)
    const refusal = await failure(client.chat.completions.create({ model: ' ', messages }))
    t.ok(refusal instanceof BadRequestError)
    t.match(refusal, { status: 400, code: 'request.missing_model', param: 'model', type: 'invalid_request_error', requestID: /./ })
  })
})
