import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { fakeHindsight } from '../plugins/services/memory/fake-hindsight.js'
import { modelsAt } from '../bench/memory/memory-models.js'
import { measureSteps } from '../bench/memory/memory-steps.js'

const program = fileURLToPath(new URL('../bench/bench.js', import.meta.url))

/** Words of one meaning, the first of which is told and the last one asked for. */
const meanings = [['tea', 'beverage'], ['piano'], ['Lisbon'], ['bees']]
const places = ['harbour', 'station', 'library', 'market', 'bridge', 'garden', 'museum', 'airport', 'chapel', 'mill', 'tower', 'quarry']
const said = [...meanings.map(([word]) => `My sister likes ${word}.`), ...places.map(place => `Yesterday it rained, and we met near that ${place}.`)]
/** More turns than are looked at, and one of four questions without a word of its answer. */
const conversation = {
  sample_id: 'made up',
  conversation: {
    session_1_date_time: '1:56 pm on 8 May, 2023',
    session_1: said.map((text, i) => ({ dia_id: `D1:${i + 1}`, speaker: 'Ada', text }))
  },
  qa: meanings.map((words, i) => ({ question: `${words.at(-1)}?`, evidence: [`D1:${i + 1}`], category: 1 }))
}

/** Near to each other where they are of one meaning. */
function vectorOf (text: string): number[] {
  const of = (words: readonly string[]): number => words.some(word => text.includes(word)) ? 4 : 0
  return [...meanings.map(of), ...places.map(place => of([place])), 1]
}

type Paths = Readonly<Record<string, (body: never) => object>>

const embeddings: Paths = {
  '/v1/embeddings': ({ input }: { readonly input: readonly string[] }) =>
    ({ data: input.map((text, index) => ({ index, embedding: vectorOf(text) })) })
}
const rerank: Paths = {
  '/v1/rerank': ({ query, documents }: { readonly query: string, readonly documents: readonly string[] }) => {
    const asked = vectorOf(query)
    const results = documents.map((text, index) =>
      ({ index, relevance_score: vectorOf(text).reduce((sum, value, at) => sum + value * asked[at]!, 0) }))
    return { results }
  }
}

/** Base URL of a server that knows these paths and no other. */
async function modelServer (t: Test, paths: Paths): Promise<string> {
  const answer: RequestListener = (req, res) => void text(req).then(body => {
    const known = paths[req.url!]
    if (known === undefined) return res.writeHead(501).end('{}')
    return res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(known(JSON.parse(body) as never)))
  })
  const server = createServer(answer).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
}

/** What `npm run bench -- --memory FILE --quality` finds, where no Hindsight is installed. */
async function bench (t: Test, env: Readonly<Record<string, string>>, ...flags: string[]): Promise<string> {
  const folder = t.testdir({ 'locomo.json': JSON.stringify([conversation]), 'clients': {} })
  const { NODE_OPTIONS: _, SVC_BENCH_MODELS: __, SVC_BENCH_HINDSIGHT: ___, ...others } = process.env
  const child = spawn(process.execPath, [program, '--memory', join(folder, 'locomo.json'), '--quality', ...flags], {
    env: { ...others, SVC_TEST_CLIENTS_DIR: join(folder, 'clients'), ...env }, stdio: ['ignore', 'pipe', 'pipe']
  })
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  t.same([code, err], [0, ''], 'the bars are met')
  return out
}

t.test('without models, there is a share of the words alone', async t => {
  const { memory } = JSON.parse(await bench(t, {}, '--json')) as { readonly memory: object }
  t.match(memory, {
    questions: 4,
    hit_at_10: { text: 0.75, text_and_rerank: null, vectors: null, vectors_without_links: null, rerank: null, hindsight: null },
    beside_hindsight: null,
    missing: { vectors: 'SVC_BENCH_MODELS is not set', rerank: 'SVC_BENCH_MODELS is not set', hindsight: /^none is here/ }
  })
})

t.test('with models and a Hindsight server, there is a share of each', async t => {
  const hindsight = await fakeHindsight(t)
  const env = { SVC_BENCH_MODELS: await modelServer(t, { ...embeddings, ...rerank }), SVC_BENCH_HINDSIGHT: hindsight.url }
  const { memory } = JSON.parse(await bench(t, env, '--json')) as { readonly memory: { readonly missing: object } }
  t.match(memory, {
    hit_at_10: { text: 0.75, vectors: 1, rerank: 1, hindsight: 0.75 },
    beside_hindsight: { conversations: ['made up'], questions: 4, svc: 1, hindsight: 0.75 }
  })
  t.same(memory.missing, {})
  t.ok(hindsight.calls.some(call => call.startsWith('POST ')))
  t.same([...hindsight.banks], [], 'its banks are gone')
})

t.test('a model server that does not rerank and a Hindsight server that fails leave the other shares', async t => {
  const models = await modelServer(t, embeddings)
  const { memory } = JSON.parse(await bench(t, { SVC_BENCH_MODELS: models, SVC_BENCH_HINDSIGHT: models }, '--json')) as { readonly memory: object }
  t.match(memory, {
    hit_at_10: { text: 0.75, text_and_rerank: null, vectors: 1, rerank: null, hindsight: null },
    missing: { vectors: undefined, rerank: /\/v1\/rerank answers 501/, hindsight: /was answered 501/ }
  })
})

t.test('a model server that does not embed leaves the shares without vectors, and the reason is told', async t => {
  const SVC_BENCH_MODELS = await modelServer(t, rerank)
  const out = await bench(t, { SVC_BENCH_MODELS })
  t.match(out, /found among the first ten: text 0\.750, vectors -, rerank 0\.750\n/)
  t.match(out, /no vectors: http:\S+\/v1\/embeddings answers 501\n/)
})

t.test('each step is left out also where nothing reranks', async t => {
  const file = join(t.testdir({ 'locomo.json': JSON.stringify([conversation]) }), 'locomo.json')
  const steps = await measureSteps(file, t.testdirName, await modelsAt(await modelServer(t, embeddings)), () => {})
  t.match(steps['sessions as documents'], { words: { all: 0.75 }, vectors: { all: 1, without_vectors: 0.75, with_rerank: null } })
})
