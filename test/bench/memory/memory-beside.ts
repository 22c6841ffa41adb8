import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { request, type Dispatcher } from 'undici'
import { shippedProgram } from '../../program.js'
import { startHindsight } from '../../rings/support/hindsight-server.js'
import type { Bar } from '../lists.js'
import { residentOf } from '../process-use.js'

export interface MemoryServer {
  /** From its start to its first answer; null for one that ran already. */
  readonly ready_ms: number | null
  readonly retain_p50_ms: number
  /** Of a bank of 1,000 memories. */
  readonly recall_p50_ms: number
  /** With all its processes, what they share counted once; null for one whose processes are not known. */
  readonly resident_mib: number | null
}

/** The embedded memory and a Hindsight server, both over HTTP and with the same vectors, one after the other. */
export interface MemoryBeside {
  readonly svc: MemoryServer
  readonly hindsight: MemoryServer
  /** What of a recall is the models' own, with either: the vector of one query. */
  readonly vector_p50_ms: number
}

const BANK_SIZE = 1_000
const SINGLES = 50
const RECALLS = 60
const BATCH = 50
const WARM = 5

/** That of `SVC_BENCH_HINDSIGHT`, which takes its vectors from `SVC_BENCH_MODELS`; else one that the tests have installed. */
interface Running {
  readonly url: string
  readonly models: string
  readonly pids: readonly number[] | null
  readonly readyMs: number | null
  /** A list below a bank that tells how many vectors are made after the answers; null where they are made before. */
  readonly vectors: '/embeddings' | null
  stop (): Promise<void>
}

async function hindsight (): Promise<Running | string> {
  const { SVC_BENCH_HINDSIGHT: url, SVC_BENCH_MODELS: models, SVC_TEST_CLIENTS_DIR, XDG_CACHE_HOME } = process.env
  if (url !== undefined) {
    if (models === undefined) return 'SVC_BENCH_HINDSIGHT needs SVC_BENCH_MODELS: the server that both take their vectors from'
    return { url, models, pids: null, readyMs: null, vectors: null, stop: () => Promise.resolve() }
  }
  const clients = SVC_TEST_CLIENTS_DIR ?? join(XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'svc-test/clients')
  if (!existsSync(join(clients, 'hindsight/installed'))) return 'none is here; test/engines/hindsight.sh install brings one'
  const begun = performance.now()
  const server = await startHindsight()
  return typeof server === 'string' ? server : { ...server, readyMs: performance.now() - begun, vectors: null }
}

/** The gateway as it ships, its memory on, which takes its vectors from `models` as the other server does. */
async function gateway (home: string, models: string): Promise<Running> {
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

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- an answer of the wire
async function called (url: string, method: Dispatcher.HttpMethod, path: string, body?: object): Promise<any> {
  const sent = body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
  // the client is a part of what is measured on either side, and `fetch` one of a millisecond
  const { statusCode, body: answer } = await request(url + path, { method, ...sent })
  const text = await answer.text()
  if (statusCode > 299) throw new Error(`${method} ${path} was answered ${statusCode}: ${text}`)
  return JSON.parse(text)
}

/** Single sentences, each of which is one memory to either. */
function sentencesOf (file: string): string[] {
  const conversations = JSON.parse(readFileSync(file, 'utf8')) as Array<{ readonly conversation: object }>
  const turns = conversations.flatMap(({ conversation }) => Object.values(conversation).filter(Array.isArray).flat())
  const found = (turns as Array<{ readonly text: string }>).map(({ text }) => /^[^.!?\n]{20,}[.!?]/.exec(text)?.[0]).filter(text => text !== undefined)
  return [...new Set(found)]
}

async function measured (
  running: Running, sentences: readonly string[], processes: (pids: readonly number[]) => number
): Promise<MemoryServer> {
  const bank = `/v1/default/banks/bench-${process.pid}`
  const call = (method: Dispatcher.HttpMethod, path: string, body?: object): ReturnType<typeof called> =>
    called(running.url, method, bank + path, body)
  await call('PUT', '', { name: 'bench' })
  // facts alone, on both sides
  await call('PATCH', '/config', { updates: { enable_observations: false } })
  const retain = (texts: readonly string[]): Promise<unknown> => call('POST', '/memories', { items: texts.map(content => ({ content })) })
  const recall = (query: string): Promise<unknown> => call('POST', '/memories/recall', { query, budget: 'low' })
  let made = WARM + SINGLES
  await p50(sentences.slice(0, WARM), text => retain([text]))
  const retained = await p50(sentences.slice(WARM, made), text => retain([text]))
  for (; made < BANK_SIZE; made += BATCH) await retain(sentences.slice(made, Math.min(made + BATCH, BANK_SIZE)))
  for (const status of ['pending', 'processing']) {
    while ((await call('GET', `/operations?status=${status}`)).total > 0) await new Promise(resolve => { setTimeout(resolve, 200) })
  }
  // a recall is measured of memories that have their vectors, on both sides
  while (running.vectors !== null && (await call('GET', running.vectors)).pending > 0) await new Promise(resolve => { setTimeout(resolve, 200) })
  const { total } = await call('GET', '/memories/list?limit=1')
  if (total < BANK_SIZE * 0.95) throw new Error(`the bank has ${total} memories`)
  const queries = sentences.slice(BANK_SIZE, BANK_SIZE + RECALLS + WARM)
  await p50(queries.slice(0, WARM), recall)
  const recalled = await p50(queries.slice(WARM), recall)
  const resident = running.pids === null ? null : processes(running.pids) / 2 ** 20
  await call('DELETE', '')
  return { ready_ms: running.readyMs, retain_p50_ms: retained, recall_p50_ms: recalled, resident_mib: resident }
}

async function p50 (texts: readonly string[], work: (text: string) => Promise<unknown>): Promise<number> {
  const times: number[] = []
  for (const text of texts) {
    const start = performance.now()
    await work(text)
    times.push(performance.now() - start)
  }
  return times.sort((a, b) => a - b)[Math.floor(times.length / 2)]!
}

/** Null where there is no such server. */
export async function measureBeside (file: string, home: string, say: (text: string) => void): Promise<MemoryBeside | null> {
  const server = await hindsight()
  if (typeof server === 'string') {
    say(`  not beside a Hindsight server: ${server}`)
    return null
  }
  try {
    const sentences = sentencesOf(file)
    // the models remember what they have computed: the second to ask would be spared it
    await called(server.models, 'POST', '/embeddings', { model: 'minilm', input: sentences.slice(0, BANK_SIZE + RECALLS + WARM) })
    const ours = await gateway(home, server.models)
    let svc: MemoryServer
    try {
      svc = await measured(ours, sentences, ([pid]) => residentOf([pid!], false))
    } finally {
      await ours.stop()
    }
    const asked = sentences.slice(BANK_SIZE + WARM, BANK_SIZE + WARM + RECALLS)
    const vector = await p50(asked, input => called(server.models, 'POST', '/embeddings', { model: 'minilm', input: [input] }))
    const theirs = await measured(server, sentences, pids => residentOf(pids, true))
    for (const [name, { ready_ms: ready, ...its }] of Object.entries({ svc, Hindsight: theirs })) {
      say(`  ${name}: retain p50 ${its.retain_p50_ms.toFixed(1)} ms, recall p50 at ${BANK_SIZE} memories ${its.recall_p50_ms.toFixed(1)} ms, ` +
        `${its.resident_mib?.toFixed(0) ?? '-'} MiB resident, ready after ${ready === null ? '-' : (ready / 1000).toFixed(1)} s`)
    }
    say(`  of either recall, the models take ${vector.toFixed(1)} ms for the query's vector`)
    return { svc, hindsight: theirs, vector_p50_ms: vector }
  } finally {
    await server.stop()
  }
}

export function besideBars (beside: MemoryBeside | null): readonly Bar[] {
  if (beside === null) return []
  const { svc, hindsight } = beside
  const share = (name: string, ours: number | null, theirs: number | null, most: number): Bar[] =>
    ours === null || theirs === null ? [] : [{ name: `memory beside Hindsight: ${name}`, value: ours / theirs, limit: `<= ${most}`, ok: ours <= theirs * most }]
  return [
    ...share('retain p50', svc.retain_p50_ms, hindsight.retain_p50_ms, 0.1),
    ...share('recall p50', svc.recall_p50_ms, hindsight.recall_p50_ms, 0.1),
    ...share('resident memory', svc.resident_mib, hindsight.resident_mib, 0.25), ...share('ready', svc.ready_ms, hindsight.ready_ms, 1)
  ]
}
