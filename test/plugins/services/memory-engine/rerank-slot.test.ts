import t from 'tap'
import type { EngineScript } from '../../../../kernel/testing/index.js'
import { wireGateway } from '../../../wire/wire-gateway.js'
import { memoryPlugins } from '../memory/host.js'
import { rerankerLies } from './models-support.js'

interface Recalled {
  readonly results: ReadonlyArray<{ readonly text: string }>
  readonly trace: { readonly steps: { readonly rerank: string | null } }
}

const headers = { 'content-type': 'application/json' }

t.test('a reranking slot that lies, breaks off or hangs over its socket leaves the order as it is, and has its say again after lies', async t => {
  let play: (documents: readonly string[]) => EngineScript = () => ({})
  const gateway = await wireGateway(t, {
    plugins: memoryPlugins,
    svc: '[memory]\nenabled = true\n[memory.embedding]\nrerank_read_timeout_s = 60\n',
    files: {
      'etc/svc/slots/rerank.toml': 'type = "reranking"\nprovider = "fake"\ndevice = "cpu"\n[model]\ndefault = "judge"\n',
      'var/lib/svc/registry/registry.toml': '[models.judge]\npath = "/dev/null"\n'
    },
    onStart: ({ engine }) => engine.answer(({ body }) => {
      const { documents } = JSON.parse(body.toString()) as { readonly documents: readonly string[] }
      return { headers, ...play(documents) }
    })
  })
  const sent = (method: string, path: string, body: object): Promise<Response> =>
    gateway.fetch(path, { method, headers, body: JSON.stringify(body) })
  const bank = '/api/memory/hindsight/v1/default/banks/b'
  const recalled = async (): Promise<object> => {
    const response = await sent('POST', `${bank}/memories/recall`, { query: 'tea', trace: true })
    const { results, trace } = await response.json() as Recalled
    return { ranOn: response.headers.get('x-svc-recall'), texts: results.map(({ text }) => text), why: trace.steps.rerank }
  }
  const honest = (documents: readonly string[]): EngineScript => ({
    chunks: [JSON.stringify({ results: documents.map((text, index) => ({ index, relevance_score: text.endsWith('north') ? 9 : 1 })) })]
  })
  await sent('POST', `${bank}/memories`, { items: ['north', 'south', 'west'].map(place => ({ content: `tea of the ${place}` })) })
  const fused = ['tea of the west', 'tea of the south', 'tea of the north']
  const ranked = ['tea of the north', 'tea of the west', 'tea of the south']
  let seconds = 30
  /** A model that failed is left alone for a while, but for a change of the settings. */
  const use = async (script: typeof play, patience = { rerank_read_timeout_s: seconds += 1 } as object): Promise<void> => {
    play = script
    t.equal((await sent('PATCH', '/api/settings', { memory: { embedding: patience } })).status, 200)
  }
  await use(honest)
  t.match(await recalled(), { ranOn: 'text+rerank', texts: ranked })

  const cut = (script: EngineScript) => (documents: readonly string[]): EngineScript =>
    ({ ...script, chunks: ['{"results":', ...honest(documents).chunks!] })
  const failures: Readonly<Record<string, typeof play>> = {
    ...Object.fromEntries(Object.entries(rerankerLies).map(([name, lie]) => [name, (documents: readonly string[]) => {
      const answer = lie('tea', documents)
      return { chunks: [typeof answer === 'string' ? answer : JSON.stringify(answer)] }
    }])),
    'a refusal': () => ({ status: 500, chunks: ['{"error":"no"}'] }),
    'an answer that breaks off': cut({ dieAfter: 1 })
  }
  for (const [name, failure] of Object.entries(failures)) {
    await use(failure)
    t.match(await recalled(), { ranOn: 'text', texts: fused, why: /failed: / }, name)
  }
  await use(honest)
  t.match(await recalled(), { ranOn: 'text+rerank', texts: ranked }, 'one that is honest again has its say again')
  await use(cut({ hangAfter: 1 }), { rerank_connect_timeout_s: 1, rerank_read_timeout_s: 1 })
  t.match(await recalled(), { ranOn: 'text', texts: fused, why: 'did not answer within 2000 ms' }, 'half an answer')
})
