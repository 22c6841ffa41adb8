import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { bigramGguf } from '../../plugins/services/demo/bigram-gguf.js'
import { run as svcRun, type Finished } from '../cli/support.js'
import { chat, liveHome, startLive, writeHome } from '../e2e/live-gateway.js'
import { eventually } from '../kernel/runtime/support.js'
import { freePort } from '../ports.js'
import { lacking } from './support/clients.js'
import { startHindsight } from './support/hindsight-server.js'

t.setTimeout(600_000)
const run = promisify(execFile)

const CONTEXT = 2048
/** In which whatever the server asks fits. */
const WIDE_CONTEXT = 32_768
/** The server asks so often by itself: `HINDSIGHT_API_LLM_MAX_RETRIES` is 3, and it heeds no status but 401 and 403. */
const TRIES = 4
/** A model that babbles does not always come to an end. */
const SEEDS = 8
const ANSWER_TOKENS = 2048

interface Asked {
  readonly path: string
  readonly body: ChatBody
  readonly format: string | null
  readonly choice: unknown
  readonly status: number
}

interface ChatBody {
  readonly model?: string
  readonly max_completion_tokens?: number
  readonly response_format?: { readonly type: string }
  readonly tool_choice?: unknown
}

interface Recorder {
  readonly url: string
  readonly asked: readonly Asked[]
}

/** Stands between the server and the gateway, or between that and the models, and writes down what is asked. */
async function recorder (t: Test, behind: string): Promise<Recorder> {
  const asked: Asked[] = []
  const server = createServer((request, response) => {
    void (async () => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      const body = Buffer.concat(chunks)
      const answer = await fetch(behind + request.url!, {
        method: request.method!, headers: { 'content-type': 'application/json' }, ...request.method === 'POST' ? { body } : {}
      })
      const sent = (request.method === 'POST' ? JSON.parse(body.toString()) : {}) as ChatBody
      const { response_format: format, tool_choice: choice } = sent
      asked.push({ path: request.url!, body: sent, format: format?.type ?? null, choice: choice ?? null, status: answer.status })
      const retry = answer.headers.get('x-should-retry')
      response.writeHead(answer.status, { 'content-type': 'application/json', ...retry !== null && { 'x-should-retry': retry } }).end(Buffer.from(await answer.arrayBuffer()))
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
  'etc/svc/slots/wide.toml': `type = "llm"\ndevice = "cpu"\n[model]\ndefault = "demo"\ncontext_size = ${WIDE_CONTEXT}\n`,
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
  const { url: front, asked: askedFor } = await recorder(t, gateway.url)
  const server = await startHindsight({
    SVC_TEST_HINDSIGHT_MODELS_PORT: String(modelsPort),
    HINDSIGHT_API_LLM_BASE_URL: `${front}/v1`,
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
    await eventually('observations are made', async () => /Observation: /.test((await kept()).join('\n')), 300_000)
    t.same(asked.filter(({ status }) => status !== 200), [])
    for (const path of ['/v1/embeddings', '/v1/rerank']) t.ok(asked.some(each => each.path === path), `${path} came through`)
    for (const format of ['json_schema', 'json_object']) t.ok(asked.some(each => each.format === format), `${format} came through`)
    t.ok(asked.some(({ choice }) => choice === 'required'), 'tool_choice came through')
  })

  await t.test('gets of the embedded engine, too, what it asks for in each of its forms', async t => {
    const forms = new Map(askedFor.filter(({ path }) => path === '/v1/chat/completions')
      .map(each => [`${each.format ?? 'text'}, tool_choice ${JSON.stringify(each.choice)}`, each]))
    for (const format of ['json_schema', 'json_object']) t.ok([...forms.keys()].some(form => form.startsWith(format)), format)
    t.ok([...forms.values()].some(({ choice }) => choice === 'required'), 'tool_choice')
    for (const [form, asking] of forms) await t.test(form, t => answered(t, gateway.url, asking))
  })

  await t.test('is brought by the gateway itself: installed, wired, started, found again after a crash, and taken away', t => brought(t, modelsPort))

  await t.test('is told by the embedded engine, and for good, that a context is too small', async t => {
    await writeHome(home, settings(home, 'agent'))
    t.equal((await fetch(`${gateway.url}/api/settings/reload`, { method: 'POST' })).status, 200)
    const before = await kept()
    const wayOut = /exceeds the available context size \(2048 tokens\), try increasing it: context_size in \[model\] of the slot/
    const first = askedFor.length
    t.match(await call('POST', '/memories', { items: [{ content: 'Eve likes tea.' }] }), { status: 500, json: { detail: wayOut } })
    t.same(askedFor.slice(first).map(({ status }) => status), Array.from({ length: TRIES }, () => 400), 'each of its own tries is refused')
    t.same(await kept(), before)
    const refused = await chat(gateway.url, { model: 'remembers', messages: [{ role: 'user', content: 'a '.repeat(CONTEXT) }] })
    t.match([refused.status, refused.headers.get('x-should-retry'), await refused.text()], [400, 'false', wayOut])
  })
})

/** What the server asked of another model, asked of the embedded engine. */
async function answered (t: Test, url: string, { body, format, choice }: Asked): Promise<void> {
  const { max_completion_tokens: _, ...rest } = body
  for (let seed = 0; seed < SEEDS; seed++) {
    const answer = await chat(url, { ...rest, model: 'wide', max_tokens: ANSWER_TOKENS, seed })
    if (answer.status !== 200) {
      return void t.match([answer.status, answer.headers.get('x-should-retry')], [400, 'false'], await answer.text())
    }
    const { choices: [said] } = await answer.json() as { readonly choices: readonly [Said] }
    if (said.finish_reason === 'length') continue
    const calls = said.message.tool_calls ?? []
    if (choice !== null && choice !== 'auto' && choice !== 'none') t.ok(calls.length > 0, 'it calls a tool')
    for (const { function: { arguments: text } } of calls) t.type(JSON.parse(text), 'object')
    if (format !== null && calls.length === 0) t.type(JSON.parse(said.message.content ?? ''), 'object')
    return
  }
  t.fail(`of ${SEEDS} answers none came to an end`)
}

interface Said {
  readonly finish_reason: string
  readonly message: {
    readonly content: string | null
    readonly tool_calls?: ReadonlyArray<{ readonly function: { readonly arguments: string } }>
  }
}

/** The user who runs the gateway: PostgreSQL does not start for root. */
const USER = process.getuid?.() === 0 ? 65_534 : undefined

async function brought (t: Test, modelsPort: number): Promise<void> {
  const [port, gatewayPort] = [await freePort(), await freePort()]
  const v1 = `http://127.0.0.1:${gatewayPort}/v1`
  const home = await liveHome(t, {
    'etc/svc/svc.toml': '[runtime]\ndriver = "process"\n[slots]\nautostart = false\n[plugins.config.api-services]\nsystemctl = "/nonexistent"\n' +
      `[plugins.config.api-services.services.hindsight]\nport = ${port}\n` +
      `env = { HINDSIGHT_API_EMBEDDINGS_OPENAI_MODEL = "models/minilm", HINDSIGHT_API_LLM_PROVIDER = "openai", HINDSIGHT_API_LLM_API_KEY = "none", HINDSIGHT_API_LLM_BASE_URL = "${v1}", HINDSIGHT_API_LLM_MODEL = "models/teller" }\n`,
    'etc/svc/upstreams.toml': `[[upstream]]\nname = "models"\nurl = "http://127.0.0.1:${modelsPort}/v1"\n`,
    'etc/svc/slots/embed.toml': 'device = "cpu"\ntype = "embedding"\n'
  })
  if (USER !== undefined) await run('chown', ['-R', String(USER), home])
  const env = { HOME: join(home, 'no-such-folder/of-this-user'), TMPDIR: tmpdir() }
  let gateway = await startLive(t, home, env, USER, [], gatewayPort)
  const svc = (...words: readonly string[]): Promise<Finished> => svcRun(['service', ...words, '--url', gateway.url])
  const ask = async (path: string, body?: object): Promise<string> => {
    const init = body === undefined ? {} : { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
    return await (await fetch(`http://127.0.0.1:${port}/v1/default/banks/ring/${path}`, { ...init, headers: { ...init.headers, connection: 'close' } })).text()
  }
  const database = async (): Promise<number> =>
    Number((await readFile(join(home, 'var/lib/svc/plugin-state/api-services/hindsight/data/.pg0/instances/svc/data/postmaster.pid'), 'utf8')).split('\n', 1)[0])

  const installed = await svc('install', 'hindsight')
  t.match(installed, { code: 0, stdout: /^Hindsight 1\.1\.0 is installed\.\n/, stderr: /^Hindsight: MIT/ }, installed.stderr)
  const started = await svc('start', 'hindsight')
  t.match(started, { code: 0, stdout: 'Hindsight answers.\n' }, started.stdout)
  t.match(await ask('memories', { items: [{ content: 'Ada lives in Bern.' }] }), /"success":true/)
  t.match(await ask('memories/recall', { query: 'Where does Ada live?' }), /Ada lives in Bern/)
  t.match(await svc('logs', 'hindsight'), { code: 0, stdout: /Application startup complete/ })

  // the server, and not its database
  const { stdout: pids } = await run('pgrep', ['-f', `${home}.*-c.*hindsight_api`])
  for (const pid of pids.trim().split('\n')) process.kill(Number(pid), 'SIGKILL')
  await eventually('it is started again', async () => /Ada/.test(await ask('memories/list')), 300_000)
  await gateway.kill('SIGKILL')
  t.match(await ask('memories/list'), /Ada/, 'it goes on without its gateway')
  gateway = await startLive(t, home, env, USER, [], gatewayPort)
  await eventually('it is taken over', async () => /^hindsight +up +python/m.test((await svc('list')).stdout))
  const postgres = await database()
  t.match(await svc('stop', 'hindsight'), { code: 0, stdout: 'Hindsight is not running.\n' })
  t.throws(() => process.kill(postgres, 0), { code: 'ESRCH' }, 'its database ends with it, whoever had started that')
  t.match(await svc('start', 'hindsight'), { code: 0 })
  t.match(await ask('memories/list'), /Ada/)
  const again = await database()
  t.match(await svc('uninstall', 'hindsight', '--data', '--yes'), { code: 0, stdout: 'Hindsight is gone.\n' })
  t.throws(() => process.kill(again, 0), { code: 'ESRCH' })
  t.notOk(existsSync(join(home, 'var/lib/svc/plugin-state/api-services/hindsight')))
  t.equal(await gateway.kill('SIGTERM'), 0, gateway.log())
}
