import t, { type Test } from 'tap'
import { createFakeProviderPlugin } from '../../../kernel/testing/index.js'
import vectorRoutes from '../../../plugins/v1/vectors/index.js'
import { until, wireGateway, type WireGateway } from '../wire-gateway.js'

const JSON_TYPE = { 'content-type': 'application/json' }

interface EmbedBody { readonly input: string | readonly unknown[], readonly encoding_format?: string }

interface Row { readonly index: number, readonly embedding: unknown }

interface Rig extends WireGateway {
  /** Inputs of the calls that the engine has got, in order. */
  calls (): unknown[]
  /** Lets the engine answer everything from now on. */
  go (): void
  embed (body: object, signal?: AbortSignal): Promise<Answer>
}

interface Answer {
  readonly status: number
  readonly rows: readonly Row[]
  readonly text: string
  readonly json: Record<string, unknown>
}

/** Numbers that a second spelling would change: whoever cuts the answer up must not read them. */
function vectorOf (text: unknown, format: string | undefined): string {
  const seed = JSON.stringify(text).length
  return format === 'base64' ? JSON.stringify(Buffer.from(JSON.stringify(text)).toString('base64')) : `[${seed}.10,-0.0, 1e-07]`
}

/** An engine with one worker that holds its first call and refuses a call with a poisoned text. */
async function rig (t: Test, svc = ''): Promise<Rig> {
  let go = (): void => {}
  const gate = new Promise<void>(resolve => { go = resolve })
  const gateway = await wireGateway(t, {
    svc,
    plugins: [vectorRoutes, createFakeProviderPlugin({ name: 'serial', concurrency: () => 1 })],
    files: {
      'etc/svc/slots/embed.toml': 'type = "embedding"\nprovider = "serial"\ndevice = "cpu"\n[model]\ndefault = "fake-model"\n'
    },
    onStart: ({ engine }) => engine.answer(({ body }) => {
      const { input, encoding_format: format } = JSON.parse(body.toString()) as EmbedBody
      const inputs = typeof input === 'string' || typeof input[0] === 'number' ? [input] : input
      if (inputs.includes('poison')) return { status: 400, headers: JSON_TYPE, chunks: ['{"error":{"message":"input is too large"}}'], after: gate }
      if (inputs.includes('odd')) return { headers: JSON_TYPE, chunks: ['{"vectors":[]}'], after: gate }
      const rows = inputs.map((text, index) => `{"object":"embedding", "index" :${index},"embedding":${vectorOf(text, format)}}`)
      // an engine may answer in any order
      const answer = `{"object":"list","data":[${rows.reverse().join(', ')}],"model":"e","usage":{"prompt_tokens":${inputs.length * 10},"total_tokens":${inputs.length * 10}}}`
      return { headers: JSON_TYPE, chunks: [answer], after: gate }
    })
  })
  await gateway.slots.load('embed')
  const engine = gateway.runtime.engine('embed')
  return Object.assign(gateway, {
    go: () => go(),
    calls: () => engine.requests.map(({ body }) => (JSON.parse(body.toString()) as EmbedBody).input),
    embed: async (body: object, signal?: AbortSignal) => {
      const response = await gateway.fetch('/v1/embeddings', {
        method: 'POST', headers: JSON_TYPE, body: JSON.stringify({ model: 'embed', ...body }), ...(signal === undefined ? {} : { signal })
      })
      const text = await response.text()
      const json = JSON.parse(text) as { data?: Row[] }
      return { status: response.status, rows: json.data ?? [], text, json: json as Record<string, unknown> }
    }
  })
}

/** Asks one after the other, so that the line is in their order; the first takes the only worker. */
async function inOrder (gateway: Rig, bodies: readonly object[]): Promise<ReturnType<Rig['embed']>[]> {
  const active = (): number => gateway.gateway.inference().dispatcher.active.size
  const asked: ReturnType<Rig['embed']>[] = []
  for (const body of bodies) {
    asked.push(gateway.embed(body))
    await until(() => active() === asked.length, 'it has come')
  }
  return asked
}

t.test('texts that wait for the same slot become one call, and everybody gets his own vectors', async t => {
  const gateway = await rig(t)
  const asked = await inOrder(gateway, [
    { input: 'first' }, { input: 'a' }, { input: ['bb', 'ccc'] }, { input: 'in "quotes" \\ é' }, { input: 'd', encoding_format: 'base64' }, { input: [1, 2, 3] }, { input: [[4], [5, 6]] }
  ])
  gateway.go()
  const [first, a, two, quoted, base64, tokens, lists] = await Promise.all(asked)
  t.strictSame(gateway.calls(), ['first', ['a', 'bb', 'ccc', 'in "quotes" \\ é'], 'd', [[1, 2, 3], [4], [5, 6]]], 'what wants something else goes apart')
  t.match(first!.text, /"embedding":\[7\.10,-0\.0, 1e-07\]/)
  t.equal(a!.text, '{"object":"list","data":[{"object":"embedding", "index" :0,"embedding":[3.10,-0.0, 1e-07]}],"model":"e","usage":{"prompt_tokens":4,"total_tokens":4}}', 'bytes as the engine wrote them')
  t.match(two!.text, /"data":\[\{"object":"embedding", "index" :0,"embedding":\[4\.10.*\{"object":"embedding", "index" :1,"embedding":\[5\.10/, 'in his order, counted from 0')
  t.match(quoted!.rows, [{ index: 0, embedding: [JSON.stringify('in "quotes" \\ é').length + 0.1] }])
  t.match(base64!.rows, [{ embedding: Buffer.from('"d"').toString('base64') }])
  t.equal(tokens!.rows.length, 1)
  t.strictSame(lists!.rows.map(({ index }) => index), [0, 1])
  const counted = [a, two, quoted].map(answer => (answer!.json.usage as { prompt_tokens: number }).prompt_tokens)
  t.equal(counted.reduce((sum, tokens) => sum + tokens, 0), 40, 'the shares of the tokens add up to what the call took')
})

t.test('what is wrong with one text is told to its client alone', async t => {
  const gateway = await rig(t)
  const asked = await inOrder(gateway, ['first', 'a', 'b', 'poison', 'c', 'd', 'odd'].map(input => ({ input })))
  gateway.go()
  const answers = await Promise.all(asked)
  t.strictSame(answers.map(({ status }) => status), [200, 200, 200, 400, 200, 200, 200])
  t.match(answers[3]!.json, { error: { message: 'input is too large' } }, 'in the words of the engine')
  t.equal(answers[6]!.text, '{"vectors":[]}', 'an answer that cannot be cut up passes as it is')
  t.match(gateway.slots.status('embed'), { inFlight: 0, waiting: 0, state: 'ready' })
})

t.test('who leaves while he waits, or while his call runs, does not harm the others', async t => {
  const gateway = await rig(t)
  const { dispatcher } = gateway.gateway.inference()
  const gone = new AbortController()
  const leaves = (input: string): Promise<unknown> => gateway.embed({ input }, gone.signal).catch(() => 'left')
  const [first] = await inOrder(gateway, [{ input: 'first' }])
  const leavers = [leaves('x')]
  await until(() => dispatcher.active.size === 2, 'one waits')
  const stays = gateway.embed({ input: 'stays' })
  await until(() => dispatcher.active.size === 3, 'two wait')
  leavers.push(leaves('y'))
  await until(() => dispatcher.active.size === 4, 'three wait')
  gone.abort()
  t.strictSame(await Promise.all(leavers), ['left', 'left'])
  await until(() => dispatcher.active.size === 2, 'their places are free')
  gateway.go()
  await first
  t.match((await stays).rows, [{ index: 0, embedding: ['"stays"'.length + 0.1] }])
  t.strictSame(gateway.calls(), ['first', 'stays'])

  const engine = gateway.runtime.engine('embed')
  let finish = (): void => {}
  const told = new Promise<void>(resolve => { finish = resolve })
  engine.answer(({ body }) => body.includes('holds') ? { headers: JSON_TYPE, chunks: ['{}'], after: told } : { headAfterMs: Infinity })
  const holds = gateway.embed({ input: 'holds' })
  await until(() => engine.requests.length === 3, 'it works')
  const inCall = new AbortController()
  const all = ['p', 'q'].map(input => gateway.embed({ input }, inCall.signal).catch(() => 'left'))
  await until(() => dispatcher.active.size === 3, 'two wait')
  finish()
  t.equal((await holds).status, 200)
  await until(() => engine.requests.length === 4, 'the joined call is with the engine')
  const call = await engine.request(3)
  inCall.abort()
  t.strictSame(await Promise.all(all), ['left', 'left'])
  t.equal(await call.closed, 'aborted', 'a call that nobody waits for is given up')
})

t.test('the line is bounded by bytes and not by the number of texts', async t => {
  const gateway = await rig(t, '[dispatcher]\nqueue_per_slot = 4\nembedding_line_bytes = 20000\n')
  const inputs = Array.from({ length: 250 }, (_, n) => `text ${n}`)
  const first = gateway.embed({ input: 'first' })
  await until(() => gateway.calls().length === 1, 'it works')
  const asked = inputs.map(input => gateway.embed({ input }))
  const { dispatcher } = gateway.gateway.inference()
  await until(() => dispatcher.active.size === 251, 'all wait')
  t.match((await gateway.embed({ input: 'x'.repeat(15_000) })).json, { error: { code: 'slot.queue_full', details: { slot: 'embed', retry_after_s: 5 } } })
  gateway.go()
  await first
  const answers = await Promise.all(asked)
  t.ok(answers.every(({ status, rows }, n) => status === 200 && (rows[0]!.embedding as number[])[0] === JSON.stringify(inputs[n]).length + 0.1), 'every text has its vector')
  t.ok(gateway.calls().length <= 8, `${gateway.calls().length} calls`)
})

t.test('a joined call that finds its engine gone waits for the next one', async t => {
  const gateway = await rig(t)
  const asked = await inOrder(gateway, ['first', 'a', 'b'].map(input => ({ input })))
  await gateway.runtime.engine('embed').crash()
  t.equal((await asked[0])!.status, 502)
  gateway.go()
  await gateway.runtime.crash('embed')
  t.strictSame((await Promise.all(asked.slice(1))).map(({ status }) => status), [200, 200])
})
