import { copyFile, mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import Docker from 'dockerode'
import t, { type Test } from 'tap'
import { liveHome, startLive, writeHome, type LiveGateway } from '../e2e/live-gateway.js'
import { testEngine } from '../kernel/runtime/engines.js'
import { pause } from '../paused.js'
import { freePort } from '../ports.js'
import { brought } from './support/clients.js'
import { between, lies } from './support/lying-reranker.js'
import { minilmUpstream } from './support/minilm-upstream.js'

t.setTimeout(850_000)

/** What `minilm.sh` made of the original weights, without llama.cpp. */
interface Expected {
  readonly texts: readonly string[]
  readonly vectors: readonly (readonly number[])[]
  readonly questions: readonly { readonly question: string, readonly answer: string }[]
  readonly query: string
  readonly scores: readonly number[]
}

/** Vectors are of length one, scores go from -5 to 5; llama.cpp rounds some steps to 16 bits. */
const [VECTOR_ERROR, SCORE_ERROR] = [1e-3, 2e-2]
const PATIENCE_S = 1
/** In which an answer comes, however busy the machine. */
const LONG_S = [59, 60] as const

const slot = (type: string, model: string, port: number, enabled: boolean): string =>
  `type = "${type}"\ndevice = "cpu"\nport = ${port}\nenabled = ${enabled}\n[model]\ndefault = "${model}"\ncontext_size = 512\n`

interface Real {
  /** Of the reranking slot. */
  readonly port: number
  readonly gateway: LiveGateway
  readonly docker: Docker
  readonly home: string
}

async function gatewayOf (t: Test, models: string): Promise<Real | null> {
  const engine = await testEngine(t, 'docker')
  if (engine === null) return null
  const home = await liveHome(t, {})
  const store = join(home, 'var/lib/svc/models')
  const port = await freePort()
  await mkdir(store, { recursive: true })
  for (const name of ['minilm', 'rank']) await copyFile(join(models, `${name}.gguf`), join(store, `${name}.gguf`))
  await writeHome(home, {
    'etc/svc/svc.toml': '[runtime]\nstop_with_gateway = true\n[slots]\nautostart = false\n[memory]\nenabled = true\n' +
      `[memory.embedding]\nrerank_connect_timeout_s = ${PATIENCE_S}\nrerank_read_timeout_s = ${PATIENCE_S}\n`,
    'etc/svc/slots/embed.toml': slot('embedding', 'minilm', await freePort(), true),
    'etc/svc/slots/rerank.toml': slot('reranking', 'rank', port, false),
    'var/lib/svc/registry/registry.toml': `[models.minilm]\npath = "${store}/minilm.gguf"\ncapabilities = ["embed"]\n` +
      `[models.rank]\npath = "${store}/rank.gguf"\ncapabilities = ["rerank"]\n`
  })
  const docker = new Docker({ socketPath: new URL(engine.host).pathname })
  t.teardown(async () => {
    for (const { Id } of await containersOf({ docker, home })) await docker.getContainer(Id).remove({ force: true })
  })
  const gateway = await startLive(t, home, { DOCKER_HOST: engine.host, SVC_TOOLBOX_IMAGE_CPU: engine.llamaImage })
  return { gateway, docker, home, port }
}

async function containersOf ({ docker, home }: Pick<Real, 'docker' | 'home'>): Promise<Docker.ContainerInfo[]> {
  const instance = (await readFile(join(home, 'var/lib/svc/instance-id'), 'utf8')).trim()
  return docker.listContainers({ all: true, filters: { label: [`svc.instance=${instance}`] } })
}

async function containerOf (real: Real, name: string): Promise<Docker.Container> {
  const found = (await containersOf(real)).find(({ Labels, State }) => Labels['svc.slot'] === name && State === 'running')
  if (found === undefined) throw new Error(`no container of ${name} runs`)
  return real.docker.getContainer(found.Id)
}

interface Result {
  readonly text: string
  readonly scores: { readonly semantic: number | null, readonly reranker: number | null }
}

interface Recalled {
  readonly ranOn: string | null
  readonly results: readonly Result[]
  readonly why: string | null
}

async function sent (url: string, method: string, path: string, body?: object): Promise<Response> {
  const response = await fetch(`${url}${path}`, {
    method, headers: { 'content-type': 'application/json' }, ...body === undefined ? {} : { body: JSON.stringify(body) }
  })
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
  return response
}

const bank = '/api/memory/hindsight/v1/default/banks/real'

async function recall ({ gateway }: Real, query: string): Promise<Recalled> {
  const response = await sent(gateway.url, 'POST', `${bank}/memories/recall`, { query, trace: true })
  const { results, trace } = await response.json() as {
    readonly results: readonly Result[]
    readonly trace: { readonly steps: { readonly rerank: string | null } }
  }
  return { ranOn: response.headers.get('x-svc-recall'), results, why: trace.steps.rerank }
}

/** Repeats the recall until it ran on this. */
async function recalledOn (real: Real, query: string, wanted: string): Promise<Recalled> {
  for (;;) {
    const recalled = await recall(real, query)
    if (recalled.ranOn === wanted) return recalled
  }
}

const texts = ({ results }: Recalled): string[] => results.map(({ text }) => text)

async function vectorsAt (v1: string, model: string, input: readonly string[]): Promise<ReadonlyArray<readonly number[]>> {
  const response = await sent(v1, 'POST', '/embeddings', { model, input, encoding_format: 'float' })
  const { data } = await response.json() as { data: Array<{ index: number, embedding: number[] }> }
  return data.sort((a, b) => a.index - b.index).map(({ embedding }) => embedding)
}

function areNear (t: Test, texts: readonly string[], got: Expected['vectors'], wanted: Expected['vectors']): void {
  t.strictSame(got.map(({ length }) => length), wanted.map(({ length }) => length))
  for (const [at, text] of texts.entries()) {
    const farthest = Math.max(...wanted[at]!.map((value, i) => Math.abs(value - got[at]![i]!)))
    t.ok(farthest < VECTOR_ERROR, `${JSON.stringify(text.slice(0, 40))}: ${farthest}`)
  }
}

async function embeds (t: Test, { gateway }: Real, { texts, vectors }: Expected): Promise<void> {
  areNear(t, texts, await vectorsAt(`${gateway.url}/v1`, 'embed', texts), vectors)
}

async function agrees (t: Test, { gateway }: Real, { texts, questions }: Expected, models: string): Promise<void> {
  const upstream = await minilmUpstream(t, models)
  if (upstream === null) return void t.pass('skipped', { skip: 'SVC_TEST_MINILM_UPSTREAM names no server with MiniLM to compare with' })
  const all = [...texts, ...questions.map(({ question }) => question)]
  areNear(t, all, await vectorsAt(`${gateway.url}/v1`, 'embed', all), await vectorsAt(upstream, 'minilm', all))
}

async function remembers (t: Test, real: Real, { texts: known, questions }: Expected): Promise<void> {
  await sent(real.gateway.url, 'POST', `${bank}/memories`, { items: known.map(content => ({ content })) })
  for (;;) {
    const { pending, done, model } = await (await sent(real.gateway.url, 'GET', `${bank}/embeddings`)).json() as Record<string, unknown>
    if (pending !== 0) continue
    t.strictSame({ done, model }, { done: known.length, model: 'embed minilm' })
    break
  }
  for (const { question, answer } of questions) {
    // a busy machine may be late with the vector of a question
    const recalled = await recalledOn(real, question, 'text+vectors')
    t.equal(texts(recalled)[0], answer, question)
    t.ok(recalled.results[0]!.scores.semantic! > 0.2, 'found by its meaning')
  }
}

async function ranks (t: Test, real: Real, { texts: known, query, scores }: Expected): Promise<void> {
  const { results } = await recalledOn(real, query, 'text+vectors+rerank')
  t.ok(results.length > 2)
  for (const { text, scores: { reranker } } of results) {
    const wanted = scores[known.findIndex(each => each.trim() === text)]!
    t.ok(Math.abs(reranker! - wanted) < SCORE_ERROR, `${JSON.stringify(text.slice(0, 40))}: ${reranker} for ${wanted}`)
  }
}

const change = ({ gateway }: Real, embedding: object): Promise<Response> =>
  sent(gateway.url, 'PATCH', '/api/settings', { memory: { embedding } })

/** The engine of the slot, asked through a server that alters what it says. */
async function lied (t: Test, real: Real, expected: Expected, fused: Recalled): Promise<void> {
  const { url, say } = await between(t, `http://127.0.0.1:${real.port}`)
  await sent(real.gateway.url, 'POST', '/api/upstreams', { name: 'between', url: `${url}/v1`, auth_style: 'none' })
  // its models are known from here on
  await sent(real.gateway.url, 'POST', '/api/upstreams/between/test')
  await change(real, { rerank_model: 'between/rank' })
  let odd = false
  const recalledAfresh = async (seconds: readonly [number, number]): Promise<Recalled> => {
    for (;;) {
      // a model that failed is left alone for a while, but for a change of the settings
      await change(real, { rerank_read_timeout_s: seconds[Number(odd = !odd)] })
      const recalled = await recall(real, expected.query)
      if (recalled.ranOn?.includes('vectors') === true) return recalled
    }
  }
  for (const [name, [lie, why]] of Object.entries(lies)) {
    say(lie)
    const recalled = await recalledAfresh(LONG_S)
    t.equal(recalled.ranOn, 'text+vectors', name)
    t.match(recalled.why, why, name)
    t.strictSame(texts(recalled), texts(fused), name)
  }
  say('half')
  const recalled = await recalledAfresh([PATIENCE_S, 2 * PATIENCE_S])
  t.match(recalled.why, /did not answer within [23]000 ms/, 'half an answer and nothing more')
  t.strictSame(texts(recalled), texts(fused))
  say(null)
  await t.test('an honest answer has its say again', t => ranks(t, real, expected))
  await change(real, { rerank_model: 'rerank', rerank_read_timeout_s: PATIENCE_S })
}

t.test('the memory on real models: MiniLM embeds and a cross-encoder ranks, both in llama.cpp', async t => {
  const models = await brought(t, 'minilm.sh')
  if (models === null) return
  const real = await gatewayOf(t, models)
  if (real === null) return
  const expected = JSON.parse(await readFile(join(models, 'expected.json'), 'utf8')) as Expected
  await t.test('the slot\'s vectors are those of the original weights', t => embeds(t, real, expected))
  await t.test('the slot\'s vectors are those of another server with MiniLM', t => agrees(t, real, expected, models))
  await t.test('a recall finds by meaning what is said in other words', t => remembers(t, real, expected))
  const fused = await recalledOn(real, expected.query, 'text+vectors')
  await sent(real.gateway.url, 'PUT', '/api/slots/rerank/config', { enabled: true })
  await t.test('the second pass is the slot\'s, and its scores those of the original weights', t => ranks(t, real, expected))
  await t.test('a reranker whose answers are altered leaves the fused order, within its time, and has its say again', t => lied(t, real, expected, fused))
  await t.test('a reranker that hangs leaves the fused order, within its time, and has its say again afterwards', async t => {
    const container = await containerOf(real, 'rerank')
    await pause(container)
    const recalled = await recall(real, expected.query)
    t.match(recalled, { ranOn: 'text+vectors', why: `did not answer within ${2 * PATIENCE_S * 1000} ms` })
    t.strictSame(texts(recalled), texts(fused))
    await container.unpause()
    t.not((await recalledOn(real, expected.query, 'text+vectors+rerank')).results[0]!.scores.reranker, null)
  })
  await t.test('a reranker that is killed leaves the fused order until it is back', async t => {
    await (await containerOf(real, 'rerank')).kill()
    const recalled = await recall(real, expected.query)
    // its engine may be back within the time
    if (recalled.ranOn === 'text+vectors') t.strictSame(texts(recalled), texts(fused))
    t.equal((await recalledOn(real, expected.query, 'text+vectors+rerank')).results.length, fused.results.length)
  })
  t.equal(await real.gateway.kill('SIGTERM'), 0)
})
