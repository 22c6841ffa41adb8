import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { request, type Dispatcher } from 'undici'
import { freePort } from '../../ports.js'
import { shippedProgram } from '../../program.js'
import { startHindsight } from '../../rings/support/hindsight-server.js'
import type { Call, WireAnswer } from './memory-calls.js'
import { modelsAt, RERANK_MODEL } from './memory-models.js'

/** That of `SVC_BENCH_HINDSIGHT`, which takes its vectors from `SVC_BENCH_MODELS`; else one that the tests have installed. */
export interface Running {
  readonly url: string
  readonly models: string
  readonly pids: readonly number[] | null
  readonly readyMs: number | null
  /** A list below a bank that tells how many vectors are made after the answers; null where they are made before. */
  readonly vectors: '/embeddings' | null
  stop (): Promise<void>
}

/** What has one that is started ask the models to rerank, too: without, it orders by ranks alone, which finds less. */
async function reranking (): Promise<Readonly<Record<string, string>>> {
  const port = await freePort()
  return {
    SVC_TEST_HINDSIGHT_MODELS_PORT: String(port), HINDSIGHT_API_RERANKER_PROVIDER: 'cohere',
    HINDSIGHT_API_RERANKER_COHERE_API_KEY: 'none', HINDSIGHT_API_RERANKER_COHERE_MODEL: RERANK_MODEL,
    HINDSIGHT_API_RERANKER_COHERE_BASE_URL: `http://127.0.0.1:${port}/v1/rerank`
  }
}

async function hindsight (reranks: boolean): Promise<Running | string> {
  const { SVC_BENCH_HINDSIGHT: url, SVC_BENCH_MODELS: models, SVC_TEST_CLIENTS_DIR, XDG_CACHE_HOME } = process.env
  if (url !== undefined) {
    if (models === undefined) return 'SVC_BENCH_HINDSIGHT needs SVC_BENCH_MODELS: the server that both take their vectors from'
    const { vectors } = await modelsAt(models)
    if (vectors !== null) return `SVC_BENCH_MODELS has no vectors for either: ${vectors}`
    return { url, models, pids: null, readyMs: null, vectors: null, stop: () => Promise.resolve() }
  }
  const clients = SVC_TEST_CLIENTS_DIR ?? join(XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'svc-test/clients')
  if (!existsSync(join(clients, 'hindsight/installed'))) return 'none is here; test/engines/hindsight.sh install brings one'
  const begun = performance.now()
  const server = await startHindsight(reranks ? await reranking() : {})
  return typeof server === 'string' ? server : { ...server, readyMs: performance.now() - begun, vectors: null }
}

/** The gateway as it ships, its memory on, which takes its vectors from `models` as the other server does. */
export async function gateway (home: string, models: string): Promise<Running> {
  await mkdir(join(home, 'etc/svc'), { recursive: true })
  await writeFile(join(home, 'etc/svc/svc.toml'), '[memory]\nenabled = true\n[memory.embedding]\nmodel = "models/minilm"\n[server]\nlog_level = "warn"\n')
  await writeFile(join(home, 'etc/svc/upstreams.toml'), `[[upstream]]\nname = "models"\nurl = ${JSON.stringify(models)}\n`)
  const program = shippedProgram()
  const begun = performance.now()
  const child = spawn(process.execPath, [program, 'serve', '--home', home, '--port', '0', '--ready-json'], {
    stdio: ['ignore', 'pipe', 'ignore']
  })
  const gone = once(child, 'exit')
  const [line] = await Promise.race([once(child.stdout, 'data'), gone.then(() => { throw new Error('the gateway ended at its start') })]) as [Buffer]
  const url = `${(JSON.parse(line.toString()) as { url: string }).url}/api/memory/hindsight`
  await called(url, 'GET', '/v1/default/banks')
  const readyMs = performance.now() - begun
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM')
    await gone
  }
  return { url, models, pids: [child.pid!], readyMs, vectors: '/embeddings', stop }
}

/** Resolves with the last byte of the answer: what a client makes of it is the client's own, and alike on either side. */
export async function answered (
  url: string, method: Dispatcher.HttpMethod, path: string, body?: object
): Promise<Omit<WireAnswer, 'body'> & { readonly bytes: Buffer }> {
  const sent = body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
  // the client is a part of what is measured on either side, and `fetch` one of a millisecond
  const { statusCode, headers, body: answer } = await request(url + path, { method, ...sent })
  const bytes = Buffer.from(await answer.arrayBuffer())
  if (statusCode > 299) throw new Error(`${method} ${path} was answered ${statusCode}: ${bytes.toString('utf8', 0, 300)}`)
  return { status: statusCode, headers, bytes }
}

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- an answer of the wire
export async function called (url: string, method: Dispatcher.HttpMethod, path: string, body?: object): Promise<any> {
  return JSON.parse((await answered(url, method, path, body)).bytes.toString())
}

/** Its banks. */
export function callsAt ({ url }: Running): Call {
  return async (method, path, body) => {
    const { bytes, ...answer } = await answered(url, method as Dispatcher.HttpMethod, `/v1/default/banks/${path}`, body as object)
    return { ...answer, body: JSON.parse(bytes.toString()) }
  }
}

/**
 * What `work` makes of a Hindsight server, which runs as long; why there is none, as a text.
 * @param reranks of one that is started: one that runs already is left as it is set up
 */
export async function besideHindsight<T> (reranks: boolean, work: (server: Running) => Promise<T>): Promise<T | string> {
  const server = await hindsight(reranks)
  if (typeof server === 'string') return server
  try {
    return await work(server)
  } finally {
    await server.stop()
  }
}
