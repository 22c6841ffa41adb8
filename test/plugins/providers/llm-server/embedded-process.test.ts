import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { eventually } from '../../../kernel/runtime/support.js'
import { rankGguf } from './rank-gguf.js'
import { embed, findsByWords, modelFile, post, ranksByLastDigit, spawnEmbedded, startEmbedded } from './support.js'

/** Milliseconds of processor time of the processes that this one has started and that have ended. */
function programMs (pid: number): number {
  const [user, system] = readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /s, '').split(' ').slice(13, 15).map(Number)
  return (user! + system!) * 10
}

t.test('SIGTERM ends it with code 0, whatever it does', async t => {
  await t.test('while an answer streams, which is cut off', async t => {
    const engine = await startEmbedded(t, ['--model', modelFile(t, { cycle: true }), '--context-shift', '--ctx-size', '512', '--parallel', '2'])
    const call = request(`${engine.url}/v1/completions`, { method: 'POST' })
    call.end(JSON.stringify({ prompt: 'x', stream: true }))
    const [response] = await once(call, 'response') as [NodeJS.ReadableStream]
    response.resume()
    const cut = once(response, 'error')
    engine.child.kill('SIGTERM')
    t.equal(await engine.exited, 0)
    await cut
    t.match(engine.output(), /SIGTERM: stopping/)
  })
  await t.test('while it loads its model', async t => {
    const engine = await spawnEmbedded(t, ['--model', modelFile(t)])
    await eventually('it listens', () => fetch(`${engine.url}/health`))
    engine.child.kill('SIGTERM')
    t.equal(await engine.exited, 0)
  })
})

t.test('what it cannot do ends it with code 1 and a sentence', async t => {
  const model = modelFile(t)
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  t.teardown(() => taken.close())
  const table: Array<[argv: string[], message: RegExp, port?: number]> = [
    [['--model', model], /E couldn't bind 127\.0\.0\.1:\d+.*EADDRINUSE/, (taken.address() as AddressInfo).port],
    [['--model', '/nowhere.gguf'], /E cannot load \/nowhere\.gguf: /],
    [['--port'], /E --model PATH is missing/],
    [['--model', model, '--reranking'], /E cannot load .*has no ranking head/]
  ]
  await Promise.all(table.map(async ([argv, message, port]) => {
    const engine = await spawnEmbedded(t, argv, port)
    t.equal(await engine.exited, 1)
    t.match(engine.output(), message)
  }))
})

t.test('the embedded engine makes vectors of every form of input', async t => {
  const engine = await spawnEmbedded(t, [
    '--model', modelFile(t), '--embedding', '--pooling', 'mean', '--ctx-size', '256', '-ub', '128', '--lora', '/x', '--mmproj', '/y'
  ])
  const { url } = engine

  await t.test('it answers before it has loaded, and says so', async t => {
    const first = await eventually('it listens', () => fetch(`${url}/health`))
    t.equal(first.status, 503)
    t.same(await first.json(), { error: { code: 503, message: 'Loading model', type: 'unavailable_error' } })
    await eventually('it serves', async () => (await fetch(`${url}/health`)).status === 200, 120_000)
    t.match(engine.output(), /W ignored.*--lora --mmproj/)
    if (process.platform === 'linux') t.equal(programMs(engine.child.pid!), 0, 'no second process has loaded the library')
    t.match(engine.output(), /I listening on http:\/\/127\.0\.0\.1:\d+/)
    t.match(engine.output(), /I model loaded in \d+ ms/)
  })

  await findsByWords(t, url)

  await t.test('every form of input', async t => {
    const one = await embed(url, 'hello')
    t.same((await embed(url, ['x', 'hello'])).data[1]?.embedding, one.data[0]?.embedding)
    t.match(one, { object: 'list', data: [{ index: 0, object: 'embedding' }], usage: { prompt_tokens: 4 } })
    t.equal((await embed(url, [[1, 93], [1, 94], [1, 95]])).data.length, 3)
    t.equal((await embed(url, [1, 93])).data.length, 1)
    t.equal((await embed(url, '')).data.length, 1)
    const { json } = await post(url, '/v1/embeddings', { input: 'hello', encoding_format: 'base64' })
    const { embedding } = (json.data as Array<{ embedding: string }>)[0]!
    const floats = new Float32Array(new Uint8Array(Buffer.from(embedding, 'base64')).buffer)
    t.same([...floats], one.data[0]?.embedding.map(Math.fround))
  })

  await t.test('the embedded engine refuses a bad request in words', async t => {
    const table: Array<[body: object, message: RegExp]> = [
      [{}, /'input': is required/],
      [{ input: [] }, /not be empty/],
      [{ input: 5 }, /'input'/],
      [{ input: 'x', encoding_format: 'int8' }, /encoding_format/],
      [{ input: '5'.repeat(300) }, /301 tokens.*batch size: 128/]
    ]
    for (const [body, message] of table) {
      t.match(await post(url, '/v1/embeddings', body), { status: 400, json: { error: { message } } }, String(message))
    }
    t.match(await post(url, '/v1/chat/completions', { messages: [] }), { status: 501, json: { error: { message: /without `--embeddings`/ } } })
  })
})

t.test('the embedded engine ranks documents', async t => {
  const model = join(t.testdir({ 'rank.gguf': rankGguf() }), 'rank.gguf')
  const { url } = await startEmbedded(t, ['--model', model, '--reranking', '--ctx-size', '256'])
  await ranksByLastDigit(t, url)
  const refused = async (body: object): Promise<object> => post(url, '/v1/rerank', body)
  t.match(await refused({ query: 'x', documents: [] }), { status: 400, json: { error: { message: /'documents'/ } } })
  t.match(await refused({ documents: ['x'] }), { status: 400, json: { error: { message: /'query'/ } } })
  t.match(await refused({ query: 'x', documents: ['5'.repeat(300)] }), { status: 400, json: { error: { type: 'exceed_context_size_error' } } })
  t.match(await post(url, '/v1/embeddings', { input: 'x' }), { status: 501 })
})
