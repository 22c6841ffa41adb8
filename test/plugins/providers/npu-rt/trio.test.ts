import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { APIError, toFile } from 'openai'
import t from 'tap'
import { wavOf } from '../audio/sound.js'
import { npuGateway, type NpuGateway } from './npu-gateway.js'

t.setTimeout(300_000)

const speech = (): Promise<File> => toFile(wavOf(5, 16_000), 'speech.wav') as Promise<File>
const TEXT = 'Segment 1. Segment 2. Segment 3.'

async function chat ({ client }: NpuGateway, model = 'npu'): Promise<string | null> {
  const answer = await client.chat.completions.create({ model, messages: [{ role: 'user', content: 'good day' }] })
  return answer.choices[0]!.message.content
}

function closeness (a: readonly number[], b: readonly number[]): number {
  return a.reduce((sum, value, i) => sum + value * b[i]!, 0)
}

t.test('the openai client on all three, which are one process', async t => {
  const gateway = await npuGateway(t)
  const { client, slots } = gateway
  t.strictSame(slots.names(), ['npu', 'npu-stt', 'npu-embed'])
  t.equal(await chat(gateway), 'You said: good day', 'a chat request starts it')
  const { pid } = await gateway.engine()

  const stream = await client.chat.completions.create({ model: 'svc/npu', stream: true, messages: [{ role: 'user', content: 'one two' }] })
  let said = ''
  for await (const chunk of stream) said += chunk.choices[0]?.delta.content ?? ''
  t.equal(said, 'You said: one two')
  t.match(await client.completions.create({ model: 'llama3.2:1b', prompt: 'x' }), { object: 'text_completion', choices: [{ text: 'You said: x' }] })

  const { data } = await client.embeddings.create({ model: 'npu-embed', input: ['the red cat', 'a red cat', 'stock market news'] })
  const [first, near, far] = data.map(({ embedding }) => embedding)
  t.equal(first!.length, 768, 'the client asks for base64, which the engine does not know')
  t.ok(closeness(first!, near!) > closeness(first!, far!) + 0.3)
  const plain = await client.embeddings.create({ model: 'embed-npu', input: 'the red cat', encoding_format: 'float' })
  t.strictSame(plain.data[0]!.embedding.map(Math.fround), [...first!].map(Math.fround))

  for (const model of ['npu-stt', 'stt-npu', 'whisper-v3:turbo']) {
    t.equal((await client.audio.transcriptions.create({ file: await speech(), model })).text, TEXT, model)
  }
  for (const model of ['llama3.2:1b-FLM', 'llama3.2-1b-FLM']) t.equal(await chat(gateway, model), 'You said: good day', model)

  const listed = (await client.models.list()).data.map(({ id }) => id)
  t.strictSame(listed, ['npu', 'whisper-v3:turbo', 'embed-gemma:300m', 'svc/npu'])

  const state = await gateway.engine()
  t.equal(state.pid, pid)
  t.strictSame(state.loads, ['llama3.2:1b'], 'no name of a request made it load another model')
  t.match(state.argv.join(' '), /^serve llama3\.2:1b --host 127\.0\.0\.1 --port \d+ --cors 0 --ctx-len 32768 --asr 1 --embed 1$/)
  t.strictSame([...new Set(state.seen)], [
    'chat llama3.2:1b', 'completion llama3.2:1b', 'embed embed-gemma:300m', 'hear whisper-v3:turbo'
  ])
})

t.test('one request at a time, whatever the surface', async t => {
  const gateway = await npuGateway(t)
  await gateway.slots.load('npu')
  t.strictSame((await gateway.engine({ pieceMs: 10 })).seen, ['chat llama3.2:1b'], 'the first inference takes the NPU, and no probe does')
  const file = await speech()
  const answers = await Promise.all([
    ...Array.from({ length: 6 }, () => chat(gateway)),
    ...Array.from({ length: 6 }, () => gateway.client.completions.create({ model: 'npu', prompt: 'x' })),
    ...Array.from({ length: 4 }, () => gateway.client.embeddings.create({ model: 'npu-embed', input: 'x' })),
    ...Array.from({ length: 4 }, () => gateway.client.audio.transcriptions.create({ file, model: 'npu-stt' }))
  ])
  t.equal(answers.length, 20, 'more than the engine\'s own queue and sockets hold')
  t.equal((await gateway.engine()).overlaps, 0)
  t.equal(gateway.slots.status('npu').workers, 1)
})

t.test('a client that leaves frees the NPU', async t => {
  const gateway = await npuGateway(t)
  await gateway.slots.load('npu')
  await gateway.engine({ pieceMs: 20 })
  const stream = await gateway.client.chat.completions.create({ model: 'npu', stream: true, messages: [{ role: 'user', content: 'word '.repeat(500) }] })
  for await (const _ of stream) break
  t.equal((await gateway.client.embeddings.create({ model: 'npu-embed', input: 'x' })).data.length, 1, 'long before all is said')
})

t.test('failures in the guise of success', async t => {
  const gateway = await npuGateway(t)
  const { client } = gateway
  await gateway.slots.load('npu')
  const failed = (request: Promise<unknown>): Promise<unknown> => request.catch((error: unknown) => error)
  const bad = { model: 'npu', messages: 'hello' } as never
  t.match(await failed(client.chat.completions.create(bad)), { status: 400, code: 'validation.invalid', message: /type must be array/ })
  const file = await toFile(Buffer.from('this is no audio'), 'a.wav')
  const noise = await failed(client.audio.transcriptions.create({ file, model: 'npu-stt' }))
  t.match(noise, { status: 502, code: 'dispatch.upstream_failed', message: /Failed to open audio stream/ })
  t.match(await failed(client.embeddings.create({ model: 'npu-embed', input: [1, 2, 3] })), { status: 400, message: /type must be string/ })
  t.match(await failed(client.embeddings.create({ model: 'npu-embed', input: 'x', dimensions: 64 })), { status: 400, param: 'dimensions' })
  t.match(await failed(client.embeddings.create({ model: 'npu-embed', input: 'x', encoding_format: 'int8' as never })), { status: 400, param: 'encoding_format' })
  const long = 'word '.repeat(40_000)
  const tooLong = await failed(client.chat.completions.create({ model: 'npu', messages: [{ role: 'user', content: long }] }))
  t.match(tooLong, { status: 400, message: /Max length reached/ }, 'its own status and words')

  await gateway.engine({ failLoads: true, loaded: null })
  for (const stream of [false, true]) {
    const request = client.chat.completions.create({ model: 'npu', stream, messages: [{ role: 'user', content: 'x' }] })
    t.match(await failed(request), { status: 502, code: 'dispatch.upstream_failed', message: /Failed to load llama3\.2:1b model!/ })
  }
})

t.test('an anchor that was unloaded is woken by chat alone', async t => {
  const gateway = await npuGateway(t)
  const { client, slots } = gateway
  await chat(gateway)
  await slots.unload('npu')
  const embed = (): Promise<unknown> => client.embeddings.create({ model: 'npu-embed', input: 'x' }).catch((error: unknown) => error)
  t.match(await embed(), { status: 503, code: 'npu.trio_unavailable', message: /svc slot restart npu/ })
  await t.rejects(slots.load('npu-embed'), { code: 'npu.trio_unavailable' })
  await t.rejects(slots.unload('npu-embed'), { code: 'slot.config_error', message: /part of slot 'npu'/ })
  t.equal(slots.status('npu').state, 'offline')
  t.equal(await chat(gateway), 'You said: good day')
  t.match(await embed(), { data: { length: 1 } })
})

t.test('without a chat model: the children alone', async t => {
  const gateway = await npuGateway(t, { anchor: 'device = "npu"\n[npu]\nchat = false\nasr = true\n' })
  const { client, slots } = gateway
  await slots.load('npu')
  t.equal((await client.audio.transcriptions.create({ file: await speech(), model: 'npu-stt' })).text, TEXT)
  const refused = await client.chat.completions.create({ model: 'npu', messages: [] }).catch((error: unknown) => error)
  t.match(refused, { status: 404 })
  const off = await client.embeddings.create({ model: 'npu-embed', input: 'x' }).catch((error: unknown) => error)
  t.ok(off instanceof APIError && off.headers?.get('x-should-retry') === 'false', 'it would be refused again')
  t.match(off, {
    status: 503, code: 'npu.trio_unavailable',
    message: /^503 slot 'npu-embed' runs in the engine of slot 'npu' and is switched off there; set asr or embed in its \[npu\] table, then `svc slot restart npu`$/
  })
  const { argv, loads } = await gateway.engine()
  t.strictSame(loads, [], 'no chat model takes memory')
  t.match(argv.join(' '), /^serve --host 127\.0\.0\.1 --port \d+ --cors 0 --asr 1$/)
})

t.test('a new gateway takes over what runs, with its children', async t => {
  const home = await mkdtemp(join(tmpdir(), 'svc-npu-'))
  t.teardown(() => rm(home, { recursive: true, force: true }))
  const first = await npuGateway(t, { home, stopEngines: false })
  await first.slots.load('npu')
  const { pid } = await first.engine()
  await first.close()
  const second = await npuGateway(t, { home })
  t.equal((await second.client.embeddings.create({ model: 'npu-embed', input: 'x' })).data.length, 1)
  t.match(second.slots.status('npu-embed'), { state: 'ready', modelId: 'embed-gemma:300m' })
  t.match(second.slots.status('npu'), { adopted: true, configDrift: false })
  t.equal((await second.engine()).pid, pid)
})

t.test('an engine that dies comes back with the next request, and all of it', async t => {
  for (const first of ['chat', 'embed', 'hear']) {
    await t.test(first, async t => {
      const gateway = await npuGateway(t)
      const { client } = gateway
      const embed = async (): Promise<number> => (await client.embeddings.create({ model: 'npu-embed', input: 'x' })).data.length
      const hear = async (): Promise<string> => (await client.audio.transcriptions.create({ file: await speech(), model: 'npu-stt' })).text
      await chat(gateway)
      const { pid } = await gateway.engine()
      const died = gone(gateway)
      process.kill(pid, 'SIGKILL')
      await died
      if (first === 'embed') t.equal(await embed(), 1)
      if (first === 'hear') t.equal(await hear(), TEXT)
      t.equal(await chat(gateway), 'You said: good day')
      t.equal(await embed(), 1)
      t.equal(await hear(), TEXT)
      t.not((await gateway.engine()).pid, pid)
    })
  }
})

async function gone ({ slots }: NpuGateway): Promise<void> {
  const controller = new AbortController()
  for await (const { state } of slots.watch('npu', controller.signal)) if (state === 'error' || state === 'offline') break
  controller.abort()
}
