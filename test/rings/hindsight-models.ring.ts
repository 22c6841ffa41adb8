import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { bigramGguf } from '../../plugins/services/demo/bigram-gguf.js'
import { chat, liveHome, startLive, writeHome } from '../e2e/live-gateway.js'
import { eventually } from '../kernel/runtime/support.js'
import { freePort } from '../ports.js'
import { lacking } from './support/clients.js'
import { startHindsight } from './support/hindsight-server.js'

t.setTimeout(600_000)

const CONTEXT = 2048

interface Asked {
  readonly path: string
  readonly format: string | null
  readonly choice: unknown
  readonly status: number
}

interface ChatBody {
  readonly response_format?: { readonly type: string }
  readonly tool_choice?: unknown
}

interface Recorder {
  readonly url: string
  readonly asked: readonly Asked[]
}

/** Stands between the gateway and the models of the server, and writes down what they are asked. */
async function recorder (t: Test, models: string): Promise<Recorder> {
  const asked: Asked[] = []
  const server = createServer((request, response) => {
    void (async () => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      const body = Buffer.concat(chunks)
      const answer = await fetch(models + request.url!, {
        method: request.method!, headers: { 'content-type': 'application/json' }, ...request.method === 'POST' ? { body } : {}
      })
      const { response_format: format, tool_choice: choice } = (request.method === 'POST' ? JSON.parse(body.toString()) : {}) as ChatBody
      asked.push({ path: request.url!, format: format?.type ?? null, choice: choice ?? null, status: answer.status })
      response.writeHead(answer.status, { 'content-type': 'application/json' }).end(Buffer.from(await answer.arrayBuffer()))
    })().catch((error: unknown) => response.writeHead(502).end(String(error)))
  })
  await new Promise<void>(resolve => { server.listen(0, '127.0.0.1', resolve) })
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked }
}

const settings = (home: string, remembers: string): Readonly<Record<string, string>> => ({
  'etc/svc/svc.toml': '[runtime]\ndriver = "process"\nstop_with_gateway = true\n[slots]\nautostart = false\n' +
    `[plugins.config.llm-server]\nprefer = "embedded"\n[aliases]\nremembers = "${remembers}"\n`,
  'etc/svc/slots/agent.toml': `type = "llm"\ndevice = "cpu"\n[model]\ndefault = "demo"\ncontext_size = ${CONTEXT}\n`,
  'var/lib/svc/registry/registry.toml': `[models.demo]\npath = "${home}/demo.gguf"\n`
})

t.test('a Hindsight server whose language model, vectors and reranker are the gateway', async t => {
  const modelsPort = await freePort()
  const { url: between, asked } = await recorder(t, `http://127.0.0.1:${modelsPort}`)
  const home = await liveHome(t, { 'etc/svc/upstreams.toml': `[[upstream]]\nname = "models"\nurl = "${between}/v1"\n`, 'demo.gguf': bigramGguf() })
  await writeHome(home, settings(home, 'models/teller'))
  const gateway = await startLive(t, home)
  t.teardown(() => gateway.kill('SIGTERM'))
  const v1 = `${gateway.url}/v1`
  const server = await startHindsight({
    SVC_TEST_HINDSIGHT_MODELS_PORT: String(modelsPort),
    HINDSIGHT_API_LLM_BASE_URL: v1,
    HINDSIGHT_API_LLM_MODEL: 'remembers',
    HINDSIGHT_API_LLM_STRICT_SCHEMA: 'true',
    // the other form, in which it asks where it is not told to be strict
    HINDSIGHT_API_LLM_STRICT_SCHEMA_CONSOLIDATION: 'false',
    HINDSIGHT_API_EMBEDDINGS_OPENAI_BASE_URL: v1,
    HINDSIGHT_API_EMBEDDINGS_OPENAI_MODEL: 'models/minilm',
    HINDSIGHT_API_RERANKER_PROVIDER: 'cohere',
    HINDSIGHT_API_RERANKER_COHERE_API_KEY: 'none',
    HINDSIGHT_API_RERANKER_COHERE_MODEL: 'models/cosine',
    HINDSIGHT_API_RERANKER_COHERE_BASE_URL: `${v1}/rerank`,
    HINDSIGHT_API_LLM_INITIAL_BACKOFF: '0.1',
    HINDSIGHT_API_LLM_MAX_BACKOFF: '0.1'
  })
  if (typeof server === 'string') return void lacking(t, server)
  t.teardown(() => server.stop())
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- an answer of the wire
  const call = async (method: string, path: string, body?: object): Promise<{ readonly status: number, readonly json: any }> => {
    const answer = await fetch(`${server.url}/v1/default/banks/ring${path}`, {
      method, ...body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
    })
    return { status: answer.status, json: await answer.json() }
  }
  const kept = async (): Promise<string[]> => (await call('GET', '/memories/list?limit=100')).json.items.map(({ text }: { text: string }) => text)

  await t.test('keeps what it is told, finds it and answers from it', async t => {
    const retained = await call('POST', '/memories', { items: [{ content: 'Ada lives in Bern.' }, { content: 'Max keeps bees.' }] })
    t.match(retained, { status: 200, json: { success: true, items_count: 2 } }, JSON.stringify(retained.json))
    const facts = (await kept()).join('\n')
    t.match(facts, /Ada lives in Bern/)
    t.match(facts, /Max keeps bees/)
    const found = await call('POST', '/memories/recall', { query: 'Where does Ada live?' })
    t.match(found.json.results[0], { text: /Ada lives in Bern/, scores: { reranker: Number } }, 'ordered by the gateway\'s reranker')
    t.match((await call('POST', '/reflect', { query: 'Where does Ada live?' })).json.text, /Ada lives in Bern/)
    await eventually('observations are made', async () => /Observation: /.test((await kept()).join('\n')), 60_000)
    t.same(asked.filter(({ status }) => status !== 200), [])
    for (const path of ['/v1/embeddings', '/v1/rerank']) t.ok(asked.some(each => each.path === path), `${path} came through`)
    for (const format of ['json_schema', 'json_object']) t.ok(asked.some(each => each.format === format), `${format} came through`)
    t.ok(asked.some(({ choice }) => choice === 'required'), 'tool_choice came through')
  })

  await t.test('is told by the embedded engine, and for good, that a context is too small', async t => {
    await writeHome(home, settings(home, 'agent'))
    t.equal((await fetch(`${gateway.url}/api/settings/reload`, { method: 'POST' })).status, 200)
    const before = await kept()
    const wayOut = /exceeds the available context size \(2048 tokens\), try increasing it: context_size in \[model\] of the slot/
    t.match(await call('POST', '/memories', { items: [{ content: 'Eve likes tea.' }] }), { status: 500, json: { detail: wayOut } })
    t.same(await kept(), before)
    const refused = await chat(gateway.url, { model: 'remembers', messages: [{ role: 'user', content: 'a '.repeat(CONTEXT) }] })
    t.match([refused.status, refused.headers.get('x-should-retry'), await refused.text()], [400, 'false', wayOut])
  })
})
