import { once } from 'node:events'
import { request } from 'node:http'
import t, { type Test } from 'tap'
import { demoSentence } from '../../plugins/services/demo/sentence.js'
import { containerGateway, type ContainerGateway } from '../e2e/engine-gateways.js'
import { chat, readStream } from '../e2e/live-gateway.js'

t.setTimeout(600_000)

const JSON_TYPE = { 'content-type': 'application/json' }

const post = (address: string, body: object): Promise<Response> =>
  fetch(address, { method: 'POST', headers: JSON_TYPE, body: JSON.stringify(body) })

async function engineOf (gateway: ContainerGateway, slot: string): Promise<string> {
  const { port } = await (await fetch(`${gateway.url}/api/slots/${slot}`)).json() as { port: number }
  return `http://127.0.0.1:${port}`
}

interface Listed {
  readonly slot: string | null
  readonly phase: string
  readonly priority: string
}

async function waitingFor (gateway: ContainerGateway, slot: string): Promise<Listed[]> {
  const { requests } = await (await fetch(`${gateway.url}/api/requests`)).json() as { requests: Listed[] }
  return requests.filter(listed => listed.slot === slot && listed.phase === 'queued')
}

async function untilWaiting (gateway: ContainerGateway, slot: string, count: number): Promise<Listed[]> {
  for (;;) {
    const waiting = await waitingFor(gateway, slot)
    if (waiting.length === count) return waiting
  }
}

/** A stream that lasts until it is left, and holds the slot's only worker. */
async function endlessStream (gateway: ContainerGateway): Promise<{ text: Promise<string>, leave: () => void }> {
  const controller = new AbortController()
  const response = await chat(gateway.url, { model: 'endless', stream: true, max_tokens: 10_000_000 }, controller.signal)
  const reader = response.body!.getReader()
  await reader.read()
  const text = (async () => {
    let all = ''
    const decoder = new TextDecoder()
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      all = (all + decoder.decode(part.value as Uint8Array, { stream: true })).slice(-100_000)
    }
    return all
  })()
  text.catch(() => {})
  return { text, leave: () => controller.abort() }
}

type Told = readonly [path: string, status: number, type: string | null, text: string]

async function passes (t: Test, gateway: ContainerGateway): Promise<void> {
  const through = `${gateway.url}/upstream/agent`
  t.equal((await fetch(`${through}/health`)).status, 200, 'a cold engine is loaded')
  const direct = await engineOf(gateway, 'agent')
  const answers = (base: string): Promise<Told[]> => Promise.all([
    fetch(`${base}/props`), fetch(`${base}/slots`), fetch(`${base}/lora-adapters`), fetch(`${base}/v1/models`), fetch(`${base}/nowhere`),
    post(`${base}/tokenize`, { content: 'Hello! I am', with_pieces: true }), post(`${base}/detokenize`, { tokens: [4, 5, 6] }),
    post(`${base}/apply-template`, { messages: [{ role: 'user', content: 'Who are you?' }] }), post(`${base}/tokenize`, { content: 7 })
  ].map(async pending => {
    const response = await pending
    const text = (await response.text()).replace(/"(created|timestamp)":\d+/g, '')
    return [new URL(response.url).pathname.replace('/upstream/agent', ''), response.status, response.headers.get('content-type'), text]
  }))
  const [own, theirs] = [await answers(through), await answers(direct)]
  for (const [i, answer] of own.entries()) t.strictSame(answer, theirs[i], answer[0])
  t.match(own.map(([, status]) => status).slice(0, 2), [200, Number])

  const [page, same] = await Promise.all([through, direct].map(async base => {
    const response = await fetch(`${base}/`)
    return { status: response.status, type: response.headers.get('content-type'), body: Buffer.from(await response.arrayBuffer()) }
  }))
  t.strictSame([page!.status, page!.type], [same!.status, same!.type], 'the engine\'s own page')
  t.ok(page!.body.equals(same!.body))
  t.equal(new URL((await fetch(through)).url).pathname, '/upstream/agent/', 'relative links of the page stay below it')

  const streamed = await (await post(`${through}/completion`, { prompt: '<|assistant|>', stream: true, n_predict: 200 })).text()
  const pieces = streamed.split('\n').filter(line => line.startsWith('data: {'))
    .map(line => (JSON.parse(line.slice(6)) as { content: string }).content)
  t.equal(pieces.join('').trim(), demoSentence, 'the engine\'s own streams')

  const { hostname, port } = new URL(gateway.url)
  const foreign = request({ hostname, port, path: '/upstream/agent/props', headers: { origin: 'http://page.example' } }).end()
  const [refused] = await once(foreign, 'response') as [{ statusCode: number, resume: () => void }]
  refused.resume()
  t.equal(refused.statusCode, 403, 'a page of another site')
}

interface Vectors {
  readonly status: number
  readonly vectors: number[][]
  readonly tokens: number
}

async function embeds (t: Test, gateway: ContainerGateway): Promise<void> {
  const embed = async (input: string | string[]): Promise<Vectors> => {
    const response = await post(`${gateway.url}/v1/embeddings`, { model: 'embed', input, encoding_format: 'float' })
    const told = await response.json() as { data?: Array<{ embedding: number[] }>, usage?: { prompt_tokens: number } }
    const { data = [], usage } = told
    return { status: response.status, vectors: data.map(({ embedding }) => embedding), tokens: usage?.prompt_tokens ?? 0 }
  }
  const words = demoSentence.split(' ')
  const word = (i: number): string => words[i % words.length]!
  const texts = Array.from({ length: 246 }, (_, i) => `${word(i)} ${word(i * 7)} `.repeat(100))
  const alone = await embed(texts[3]!)
  const answers = await Promise.all(texts.map(text => embed(text)))
  t.strictSame(answers.filter(({ status }) => status !== 200), [], 'a document of half a megabyte, a request for each piece of it, all at once')
  const near = (a: readonly number[], b: readonly number[]): boolean =>
    a.length === b.length && a.every((value, i) => Math.abs(value - b[i]!) < 1e-3)
  t.ok(near(answers[3]!.vectors[0]!, alone.vectors[0]!), 'in a joined call a text has the vector that it has alone')
  const whole = await embed(texts)
  t.equal(answers.reduce((sum, { tokens }) => sum + tokens, 0), whole.tokens, 'tokens are shared out, none is counted twice')
  t.ok(whole.vectors.every((vector, i) => near(vector, answers[i]!.vectors[0]!)), 'everybody has their own')

  const few = texts.slice(0, 16)
  const poisoned = await Promise.all([...few, 'word '.repeat(40_000), ...few].map(text => embed(text)))
  t.strictSame(poisoned.map(({ status }) => status), [...few.map(() => 200), 400, ...few.map(() => 200)],
    'what is wrong with one text is told to its client alone')
}

async function letsPeopleFirst (t: Test, gateway: ContainerGateway): Promise<void> {
  const endless = await endlessStream(gateway)
  const order: string[] = []
  const ask = async (name: string, body: object): Promise<void> => {
    const response = await chat(gateway.url, { model: 'endless', max_tokens: 5, ...body })
    t.equal(response.status, 200, name)
    await response.text()
    order.push(name)
  }
  const titles = [1, 2].map(i => ask(`title ${i}`, { seed: i }))
  await untilWaiting(gateway, 'endless', 2)
  const person = ask('person', { stream: true })
  t.strictSame((await untilWaiting(gateway, 'endless', 3)).map(({ priority }) => priority).sort(), ['low', 'low', 'normal'])
  endless.leave()
  await Promise.all([...titles, person])
  t.equal(order[0], 'person')
}

async function outlives (t: Test, gateway: ContainerGateway): Promise<void> {
  const streaming = await endlessStream(gateway)
  const queued = chat(gateway.url, { model: 'endless', max_tokens: 5, stream: true })
  await untilWaiting(gateway, 'endless', 1)
  await (await gateway.container('endless')).kill()
  t.match(readStream(await streaming.text), { done: false, error: 'dispatch.upstream_failed' }, 'who was being answered is told')
  const response = await queued
  t.equal(response.status, 200, 'who was never sent waits for the engine to come back')
  t.match(readStream(await response.text()), { done: true, error: null })
}

t.test('a real llama-server seen from outside', async t => {
  const gateway = await containerGateway(t)
  if (gateway === null) return
  await t.test('below /upstream stands the engine itself', t => passes(t, gateway))
  await t.test('many small embedding requests', t => embeds(t, gateway))
  await t.test('a stream goes before chores that came earlier', t => letsPeopleFirst(t, gateway))
  await t.test('a queued request outlives docker kill', t => outlives(t, gateway))
  t.equal(await gateway.kill('SIGTERM'), 0)
})
