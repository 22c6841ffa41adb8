import OpenAI from 'openai'
import t, { type Test } from 'tap'
import { FakeClock, FakeEngineRuntime } from '../../kernel/testing/index.js'
import { until, wireGateway, type WireGateway } from './wire-gateway.js'

const messages = [{ role: 'user' as const, content: 'hi' }]

/** Engines that do not come up for as long as they are broken, and say so in their log. */
class BrokenRuntime extends FakeEngineRuntime {
  broken = true
  tries = 0

  override start (id: string): Promise<void> {
    this.tries++
    return this.broken ? Promise.reject(new Error('it ended at once')) : super.start(id)
  }

  override async* logs (): AsyncGenerator<string> {
    yield 'loading the model'
    yield 'error: tensor 7 has the wrong shape'
  }
}

interface Broken extends WireGateway {
  readonly runtime: BrokenRuntime
  readonly clock: FakeClock
}

async function broken (t: Test): Promise<Broken> {
  const clock = new FakeClock()
  const runtime = new BrokenRuntime()
  t.teardown(() => runtime.destroy())
  return Object.assign(await wireGateway(t, { clock, runtime }), { runtime, clock })
}

interface Refusal {
  readonly status: number
  readonly retryAfter: string | null
  readonly again: string | null
  readonly error: { readonly code: string, readonly message: string, readonly details: { readonly log_tail?: readonly string[] } }
}

async function refusal (asked: Promise<Response>): Promise<Refusal> {
  const response = await asked
  const { error } = await response.json() as { error: Refusal['error'] }
  return { status: response.status, retryAfter: response.headers.get('retry-after'), again: response.headers.get('x-should-retry'), error }
}

t.test('a click of an unmodified client starts a broken model once, not once for each of its tries', async t => {
  for (const stream of [false, true]) {
    const { baseUrl, runtime } = await broken(t)
    const client = new OpenAI({ baseURL: `${baseUrl}/v1`, apiKey: 'x', maxRetries: 5 })
    const asked = client.chat.completions.create({ model: 'agent', messages, stream })
    const error = await asked.then(() => null, (failure: unknown) => failure)
    t.match(error, { status: 502, code: 'slot.load_failed', message: /it ended at once/ })
    t.equal(runtime.tries, 1, `stream ${stream}`)
    runtime.broken = false
    t.equal((await client.chat.completions.create({ model: 'agent', messages })).choices.length, 1, 'the next click leaves the error behind')
  }
})

t.test('a storm of requests on a model that does not start: few starts, and everybody hears why and when', async t => {
  const { chat, runtime, clock } = await broken(t)
  const first = await refusal(chat({}))
  t.match(first, { status: 502, again: 'false', error: { code: 'slot.load_failed', details: { log_tail: ['loading the model', /wrong shape/] } } })
  await refusal(chat({}))
  t.equal(runtime.tries, 2, 'one more try at once')
  for (let second = 0; second < 300; second += 5) {
    const bodies = [{}, { stream: true }, { seed: second }, { stream: true, n: 2 }]
    const storm = await Promise.all(bodies.map(body => refusal(chat(body))))
    for (const { status, retryAfter, again, error } of storm) {
      if (error.code === 'slot.load_failed') continue
      t.match([status, error.code, again], [503, 'slot.crash_looping', null])
      t.ok(Number(retryAfter) >= 1 && Number(retryAfter) <= 300, `come back in ${retryAfter}`)
      t.match(error.details.log_tail?.at(-1), /wrong shape/)
    }
    await clock.advance(5_000)
  }
  t.ok(runtime.tries >= 6 && runtime.tries <= 9, `${runtime.tries} starts for 240 requests in five minutes`)
  runtime.broken = false
  await clock.advance(300_000)
  t.equal((await chat({})).status, 200, 'what is repaired is found by a request')
})

t.test('a model that is too large for this machine is told as such', async t => {
  const gateway = await wireGateway(t, {
    onStart: ({ slot, engine }) => {
      engine.health(503)
      setImmediate(() => { void gateway.runtime.crash(slot, 137) })
    }
  })
  t.match(await refusal(gateway.chat({})), {
    status: 502, again: 'false', error: { code: 'slot.load_failed', message: /code 137: .*want of memory; unload another slot, or take a smaller model/ }
  })
})

t.test('a client that loses patience while a model loads, and asks again, joins the load', async t => {
  let release = (): void => {}
  const gate = new Promise<void>(resolve => { release = resolve })
  let starts = 0
  const gateway = await wireGateway(t, {
    onStart: () => {
      starts++
      return gate
    }
  })
  const { slots } = gateway
  const client = new OpenAI({ baseURL: `${gateway.baseUrl}/v1`, apiKey: 'x', maxRetries: 1, timeout: 2_500 })
  const answer = client.chat.completions.create({ model: 'agent', messages })
  await until(() => slots.status('agent').waiting === 1, 'it waits')
  await until(() => slots.status('agent').waiting === 0, 'it has left')
  await until(() => slots.status('agent').waiting === 1, 'it waits again')
  release()
  t.equal((await answer).choices[0]!.message.content, 'Hello there')
  t.equal(starts, 1, 'one start for both')
  t.equal(gateway.runtime.engine('agent').requests.length, 1, 'and one call')
})
