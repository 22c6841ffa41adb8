import t, { type Test } from 'tap'
import { chatAnswer, createFakeProviderPlugin } from '../../kernel/testing/index.js'
import { FakeClock } from '../../kernel/testing/fake-clock.js'
import messageRoutes from '../../plugins/v1/messages/index.js'
import requests from '../../plugins/api/requests/index.js'
import { until, wireGateway, type WireGateway, type WireOptions } from './wire-gateway.js'

interface Answer {
  readonly error?: { readonly code: string }
  readonly choices?: ReadonlyArray<{ readonly message: { readonly content: string } }>
}

interface Queued extends WireGateway {
  /** Words of the users whose requests the engine has, in order. */
  atEngine (): string[]
  /** Lets the engine answer the request of this user. */
  finish (word: string): void
  /** As `ask`, with other fields of the body and headers. */
  askAs (word: string, body: object, headers?: Record<string, string>): Promise<string>
  ask (word: string, signal?: AbortSignal): Promise<string>
  list (): Promise<Array<Record<string, unknown>>>
}

/** A slot whose engine works on `workers` requests at once and answers none before it is told to. */
async function queued (t: Test, workers: number, options: WireOptions = {}): Promise<Queued> {
  const waiting = new Map<string, () => void>()
  const gateway = await wireGateway(t, {
    ...options,
    plugins: [requests, messageRoutes, createFakeProviderPlugin({ name: 'serial', concurrency: ({ slot }) => slot.workers })],
    files: { 'etc/svc/slots/agent.toml': `type = "llm"\nprovider = "serial"\ndevice = "cpu"\nworkers = ${workers}\n[model]\ndefault = "fake-model"\n`, ...options.files }
  })
  await gateway.slots.load('agent')
  const wordOf = (body: Buffer): string => (JSON.parse(body.toString()) as { user?: string }).user ?? ''
  const obey = (): void => gateway.runtime.engine('agent').answer(({ body, url }) => {
    const word = wordOf(body)
    if (url.includes('count_tokens')) return { chunks: ['{"input_tokens":3}'] }
    const told = new Promise<void>(resolve => { waiting.set(word, resolve) })
    return { headers: { 'content-type': 'application/json' }, chunks: [chatAnswer(word)], after: told }
  })
  obey()
  return Object.assign(gateway, {
    atEngine: () => {
      const { requests: seen } = gateway.runtime.engine('agent')
      return seen.filter(({ url }) => url.includes('chat')).map(({ body }) => wordOf(body))
    },
    finish: (word: string) => waiting.get(word)!(),
    askAs: async (word: string, body: object, headers = {}) => (await gateway.fetch('/v1/chat/completions', {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ model: 'agent', user: word, messages: [], ...body })
    })).text(),
    ask: async (word: string, signal?: AbortSignal) => {
      const response = await gateway.chat({ user: word }, signal)
      const { error, choices } = await response.json() as Answer
      return error === undefined ? choices![0]!.message.content : `${response.status} ${error.code} ${response.headers.get('retry-after')}`
    },
    list: async () => (await (await gateway.fetch('/api/requests')).json() as { requests: Array<Record<string, unknown>> }).requests
  })
}

t.test('no more requests at the engine than it has workers; the others stand in line, seen and in order', async t => {
  const gateway = await queued(t, 2)
  const answers: string[] = []
  const asked: Array<Promise<void>> = []
  for (const word of ['a', 'b', 'c', 'd', 'e']) {
    asked.push(gateway.ask(word).then(answer => { answers.push(answer) }))
    const { slots } = gateway
    const before = asked.length
    await until(() => slots.status('agent').inFlight + slots.status('agent').waiting === before, `${word} has come`)
  }
  t.match(gateway.slots.status('agent'), { state: 'serving', inFlight: 2, waiting: 3, workers: 2 })
  await until(() => gateway.atEngine().length === 2, 'two are at work')
  t.strictSame(gateway.atEngine(), ['a', 'b'])
  const rows = await gateway.list()
  t.strictSame(rows.map(({ phase }) => phase), ['waiting', 'waiting', 'queued', 'queued', 'queued'])
  t.match(rows[4], { reason: 'slot \'agent\' is busy: 2 running on 2 workers, 3 waiting' })

  const counted = await gateway.fetch('/v1/messages/count_tokens', {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ model: 'agent', messages: [] })
  })
  t.same(await counted.json(), { input_tokens: 3 }, 'what needs no worker waits for none')

  gateway.finish('b')
  await until(() => gateway.atEngine().length === 3, 'the next one goes')
  for (const word of ['c', 'a', 'd', 'e']) {
    await until(() => gateway.atEngine().includes(word), `${word} is at the engine`)
    gateway.finish(word)
  }
  await Promise.all(asked)
  t.strictSame(gateway.atEngine(), ['a', 'b', 'c', 'd', 'e'], 'first come, first served')
  t.strictSame(answers, ['b', 'c', 'a', 'd', 'e'], 'everybody got his own answer')
  t.match(gateway.slots.status('agent'), { state: 'ready', inFlight: 0, waiting: 0 })
})

t.test('people who watch an answer come go before chores, and a chore that has waited long enough before newcomers', async t => {
  const clock = new FakeClock()
  const gateway = await queued(t, 1, { clock })
  const { slots } = gateway
  const asked = [gateway.askAs('first', { stream: true })]
  await until(() => gateway.atEngine().length === 1, 'it works')
  const wait = async (word: string, body: object, headers: Record<string, string> = {}): Promise<void> => {
    const before = asked.push(gateway.askAs(word, body, headers))
    await until(() => slots.status('agent').waiting === before - 1, `${word} waits`)
  }
  await wait('title', {})
  await wait('script in a hurry', {}, { 'x-svc-priority': 'normal' })
  await wait('person', { stream: true })
  await wait('background', { stream: true }, { 'x-svc-priority': 'low' })
  await clock.advance(30_000)
  await wait('late person', { stream: true })
  t.strictSame((await gateway.list()).map(({ priority }) => priority), ['normal', 'low', 'normal', 'normal', 'low', 'normal'], 'the class can be seen')
  const order = ['first', 'script in a hurry', 'person', 'title', 'background', 'late person']
  for (const [i, word] of order.entries()) {
    await until(() => gateway.atEngine().length === i + 1, `${word} is next`)
    t.equal(gateway.atEngine().at(-1), word)
    gateway.finish(word)
  }
  await Promise.all(asked)
})

t.test('a load that only a chore wants ends with its client', async t => {
  const gateway = await wireGateway(t, {
    onStart: ({ engine }) => { if (gateway.runtime.started.length === 0) engine.health(503) }
  })
  const { slots } = gateway
  const leave = new AbortController()
  const chore = gateway.chat({ user: 'title' }, leave.signal).catch(() => 'left')
  await until(() => slots.status('agent').state === 'warming', 'it loads')
  leave.abort()
  t.equal(await chore, 'left')
  await until(() => slots.status('agent').state === 'offline', 'nobody else wants it')
  t.equal((await gateway.chat({ stream: true })).status, 200, 'the next one loads it')
})

t.test('who leaves or is cancelled while he waits never reaches the engine', async t => {
  const gateway = await queued(t, 1)
  const { slots } = gateway
  const first = gateway.ask('first')
  await until(() => gateway.atEngine().length === 1, 'it works')
  const gone = new AbortController()
  const leaver = gateway.ask('leaver', gone.signal).catch(() => 'left')
  await until(() => slots.status('agent').waiting === 1, 'one waits')
  const cancelled = gateway.ask('cancelled')
  await until(() => slots.status('agent').waiting === 2, 'two wait')
  const last = gateway.ask('last')
  await until(() => slots.status('agent').waiting === 3, 'three wait')
  gone.abort()
  t.equal(await leaver, 'left')
  await until(() => slots.status('agent').waiting === 2, 'his place is free at once')
  const row = (await gateway.list()).find(({ phase }) => phase === 'queued')
  await gateway.fetch(`/api/requests/${row!.id as string}/cancel`, { method: 'POST' })
  t.match(await cancelled, /^499 request\.cancelled/)
  gateway.finish('first')
  t.equal(await first, 'first')
  await until(() => gateway.atEngine().length === 2, 'the line goes on')
  gateway.finish('last')
  t.equal(await last, 'last')
  t.strictSame(gateway.atEngine(), ['first', 'last'])
  t.strictSame(gateway.logs.filter(({ level }) => level === 'error' || level === 'warn'), [], 'a client that leaves is no failure')
  t.match(gateway.logs.filter(({ message }) => /client left/.test(message)), [{ level: 'debug', fields: { request_id: /./ } }])
})

t.test('a full line turns newcomers away, with a time to come back', async t => {
  const gateway = await queued(t, 1, { svc: '[dispatcher]\nqueue_per_slot = 2\n' })
  const { slots } = gateway
  const first = gateway.ask('first')
  await until(() => gateway.atEngine().length === 1, 'it works')
  const waiting = [gateway.ask('second'), gateway.ask('third')]
  await until(() => slots.status('agent').waiting === 2, 'two wait')
  t.equal(await gateway.ask('fourth'), '503 slot.queue_full 5')
  const stream = await gateway.chat({ user: 'stream', stream: true })
  t.equal(stream.status, 503, 'a stream is turned away as well, with its status')
  t.match(await stream.json(), { error: { code: 'slot.queue_full', type: 'overloaded_error', details: { slot: 'agent', retry_after_s: 5 } } })
  t.equal(stream.headers.get('x-should-retry'), null, 'it passes by itself')
  for (const word of ['first', 'second', 'third']) {
    await until(() => gateway.atEngine().includes(word), word)
    gateway.finish(word)
  }
  t.strictSame(await Promise.all([first, ...waiting]), ['first', 'second', 'third'])
  t.equal(gateway.atEngine().length, 3)
})

t.test('a cold slot has a line too', async t => {
  let start = (): void => {}
  const gateway = await wireGateway(t, { svc: '[dispatcher]\nqueue_per_slot = 2\n', onStart: () => new Promise<void>(resolve => { start = resolve }) })
  const asked = [gateway.chat({ user: 'a' }), gateway.chat({ user: 'b' })]
  await until(() => gateway.slots.status('agent').waiting === 2, 'two wait for the start')
  const joining = gateway.chat({ user: 'a' })
  const turnedAway = await gateway.chat({ user: 'c' })
  t.match(await turnedAway.json(), { error: { code: 'slot.queue_full' } })
  start()
  for (const answer of [...asked, joining]) t.equal((await answer).status, 200, 'who shares a call takes no place in the line')
  t.equal(gateway.runtime.engine('agent').requests.length, 2)
})

t.test('equal requests to a busy slot get an answer each', async t => {
  const gateway = await queued(t, 1)
  const first = gateway.ask('first')
  await until(() => gateway.atEngine().length === 1, 'it works')
  const twins = [gateway.ask('twin'), gateway.ask('twin')]
  await until(() => gateway.slots.status('agent').waiting === 2, 'both wait')
  gateway.finish('first')
  await first
  await until(() => gateway.atEngine().length === 2, 'one goes')
  gateway.finish('twin')
  await until(() => gateway.atEngine().length === 3, 'and then the other')
  gateway.finish('twin')
  t.strictSame(await Promise.all(twins), ['twin', 'twin'])
})

t.test('those who wait outlive a crash of the engine, and a second one soon after tells them', async t => {
  const gateway = await queued(t, 1)
  const { slots } = gateway
  const first = gateway.ask('first')
  await until(() => gateway.atEngine().length === 1, 'it works')
  const second = gateway.ask('second')
  await until(() => slots.status('agent').waiting === 1, 'one waits')
  await gateway.runtime.crash('agent')
  t.match(await first, /^502 dispatch\.upstream/)
  t.equal(await second, 'Hello there', 'a new engine answers the one who waited')

  gateway.runtime.engine('agent').answer({ headAfterMs: Infinity })
  const third = gateway.ask('third')
  await until(() => gateway.atEngine().length === 2, 'it works')
  const fourth = gateway.ask('fourth')
  await until(() => slots.status('agent').waiting === 1, 'one waits')
  await gateway.runtime.crash('agent')
  t.match(await third, /^502 dispatch\.upstream/)
  t.match(await fourth, /^503 slot\.crash_looping [1-5]$/)
})

t.test('a queued request was never sent, so it waits for the reload of an engine that died under another', async t => {
  const gateway = await queued(t, 1)
  const { slots } = gateway
  const first = gateway.ask('first')
  await until(() => gateway.atEngine().length === 1, 'it works')
  const second = gateway.ask('second')
  await until(() => slots.status('agent').waiting === 1, 'one waits')
  // a container that is killed breaks its connections some time before its runtime tells of its end
  await gateway.runtime.engine('agent').crash()
  t.match(await first, /^502 dispatch\.upstream/)
  const third = gateway.ask('third')
  await until(() => slots.status('agent').waiting === 2, 'a newcomer is not sent there either')
  t.match((await gateway.list()).map(({ phase }) => phase), ['queued', 'queued'])
  await gateway.runtime.crash('agent')
  t.strictSame(await Promise.all([second, third]), ['Hello there', 'Hello there'], 'the next engine answers both')
  t.equal(gateway.runtime.started.length, 2)
})

t.test('a request that finds its engine gone before anybody knew waits for the reload', async t => {
  const gateway = await queued(t, 2)
  await gateway.runtime.engine('agent').crash()
  const asked = gateway.ask('a')
  await until(() => gateway.slots.status('agent').waiting === 1, 'it was not sent, so it stands in line')
  await gateway.runtime.crash('agent')
  t.equal(await asked, 'Hello there')
})

t.test('a broken answer of an engine that lives holds nobody up', async t => {
  const gateway = await queued(t, 1)
  await gateway.slots.load('agent')
  const first = gateway.ask('first')
  await until(() => gateway.atEngine().length === 1, 'it works')
  const second = gateway.ask('second')
  await until(() => gateway.slots.status('agent').waiting === 1, 'one waits')
  gateway.runtime.engine('agent').cut()
  t.match(await first, /^502 dispatch\.upstream/)
  await until(() => gateway.atEngine().length === 2, 'the next one is sent once the engine has answered its health check')
  gateway.finish('second')
  t.equal(await second, 'second')
  t.equal(gateway.runtime.started.length, 1, 'the same engine')
})

t.test('an unload ends the line, a restart keeps it', async t => {
  const gateway = await queued(t, 1)
  const { slots } = gateway
  const first = gateway.ask('first')
  await until(() => gateway.atEngine().length === 1, 'it works')
  const second = gateway.ask('second')
  await until(() => slots.status('agent').waiting === 1, 'one waits')
  const restarted = slots.restart('agent')
  gateway.finish('first')
  t.equal(await first, 'first')
  await restarted
  t.equal(await second, 'Hello there')

  gateway.runtime.engine('agent').answer({ headAfterMs: Infinity })
  const third = gateway.ask('third')
  await until(() => gateway.atEngine().length === 2, 'it works')
  const fourth = gateway.ask('fourth')
  await until(() => slots.status('agent').waiting === 1, 'one waits')
  const unloaded = slots.unload('agent', { force: true })
  t.match(await fourth, /^503 slot\.stopped 1$/)
  t.match(await third, /^503 slot\.stopped 1$/)
  await unloaded
  t.match(slots.status('agent'), { state: 'offline', waiting: 0, inFlight: 0, workers: null })
})
