import t from 'tap'
import { chatStream } from '../../kernel/testing/index.js'
import { wireGateway, type WireGateway } from './wire-gateway.js'

const ON = '[dispatcher]\nshow_loading = true\n'
const SSE = { 'content-type': 'text/event-stream' }
const words = chatStream(['a', 'b', 'c'])

interface Chunk {
  readonly id?: string
  readonly object?: string
  readonly model?: string
  readonly choices?: ReadonlyArray<{ readonly delta: { readonly role?: string, readonly reasoning_content?: string } }>
  readonly error?: { readonly code: string }
}

function eventsOf (text: string): Chunk[] {
  return text.split('\n\n').filter(event => event.startsWith('data: {')).map(event => JSON.parse(event.slice('data: '.length)) as Chunk)
}

/** Reads on until the text fits. */
async function readOn (reader: ReadableStreamDefaultReader<Uint8Array>, text: string, enough: RegExp | null): Promise<string> {
  const decoder = new TextDecoder()
  while (enough === null || !enough.test(text)) {
    const { done, value } = await reader.read()
    if (done) return text
    text += decoder.decode(value, { stream: true })
  }
  return text
}

async function post (gateway: WireGateway, path: string, body: object): Promise<Response> {
  return await gateway.fetch(path, {
    method: 'POST', headers: { 'content-type': 'application/json', 'x-request-id': 'one' }, body: JSON.stringify(body)
  })
}

t.test('a stream that waits for a cold slot begins at once, tells of the load, and goes on as the engine has it', async t => {
  let start = (): void => {}
  const started = new Promise<void>(resolve => { start = resolve })
  const gateway = await wireGateway(t, {
    svc: ON,
    onStart: async ({ engine }) => {
      engine.answer({ headers: SSE, chunks: words })
      await started
    }
  })
  const response = await post(gateway, '/v1/chat/completions', { model: 'svc/agent', messages: [], stream: true })
  t.equal(response.status, 200)
  t.match(response.headers.get('content-type'), /^text\/event-stream/)
  const reader = response.body!.getReader()
  const before = await readOn(reader, '', /reasoning_content/)
  t.match(eventsOf(before)[0], {
    id: 'chatcmpl-one', object: 'chat.completion.chunk', model: 'svc/agent', created: Number,
    choices: [{ index: 0, delta: { role: 'assistant', reasoning_content: /^agent: .*start.*\n$/ }, finish_reason: null }]
  })
  start()
  const all = await readOn(reader, before, null)
  const answer = words.join('')
  t.ok(all.endsWith(answer), 'the stream of the engine is unchanged')
  const notes = eventsOf(all.slice(0, -answer.length))
  t.ok(notes.every(({ choices }) => choices?.[0]?.delta.reasoning_content !== undefined), 'nothing else was written before it')
  t.equal(notes.filter(({ choices }) => choices?.[0]?.delta.role !== undefined).length, 1)

  const warm = await (await post(gateway, '/v1/chat/completions', { model: 'agent', messages: [], stream: true })).text()
  t.equal(warm, answer, 'a slot that is up has nothing to tell')
})

t.test('a load that fails ends the stream with the error event', async t => {
  const gateway = await wireGateway(t, { svc: ON, onStart: () => { throw new Error('no memory') } })
  const response = await gateway.chat({ stream: true })
  t.equal(response.status, 200)
  const text = await response.text()
  t.match(eventsOf(text).at(-1), { error: { code: 'slot.load_failed' } })
  t.notMatch(text, /\[DONE\]/)
})

t.test('what nothing was started for keeps its status', async t => {
  const gateway = await wireGateway(t, { svc: ON, files: { 'etc/svc/slots/lost.toml': 'provider = "fake"\ndevice = "cpu"\n[model]\ndefault = "ghost"\n' } })
  const response = await gateway.chat({ stream: true, model: 'lost' })
  t.equal(response.status, 404)
  t.match(await response.json(), { error: { code: 'model.not_found' } })
})

t.test('only streams of chat completions are told, and only when it is switched on', async t => {
  for (const [svc, path, body] of [
    ['', '/v1/chat/completions', { messages: [], stream: true }],
    [ON, '/v1/chat/completions', { messages: [] }],
    [ON, '/v1/completions', { prompt: 'x', stream: true }]
  ] as const) {
    const gateway = await wireGateway(t, { svc })
    t.notMatch(await (await post(gateway, path, { model: 'agent', ...body })).text(), /reasoning_content/, `${svc} ${path}`)
  }
})
