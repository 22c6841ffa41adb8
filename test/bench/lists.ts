import { mkdir, writeFile } from 'node:fs/promises'
import { Agent, get } from 'node:http'
import { join } from 'node:path'
import { startProgram, type BenchServer } from './servers.js'
import { percentile } from './streams.js'

export const AMOUNTS = { slots: 200, models: 5_000, rows: 50_000 }

/** What is listed, with the filters that people use. */
export const listRoutes = [
  '/v1/models',
  '/v1/models/svc/slot-7',
  '/api/slots',
  '/api/slots/metrics',
  '/api/slots/capacity',
  '/api/models',
  '/api/models/catalogue',
  '/api/models/model-42',
  '/api/models/pulls',
  '/api/profiles',
  '/api/stacks',
  '/api/capabilities',
  '/api/backends',
  '/api/upstreams',
  '/api/requests',
  '/api/status',
  '/api/health/system',
  '/api/hardware',
  '/api/stats/slots',
  '/api/stats/throughput/history',
  '/api/install/state',
  '/api/config/models',
  '/api/settings',
  '/api/plugins',
  '/api/chat-templates',
  '/api/journal',
  '/api/journal?limit=500',
  '/api/events',
  '/api/activity',
  '/api/activity?limit=1000',
  '/api/activity?category=slot&outcome=error',
  '/api/activity?action=model.*&actor=cli',
  '/api/activity?target=thing-7',
  '/api/activity?search=thing-499',
  '/api/activity?search=nothing-has-it',
  '/api/activity?before=1000',
  '/api/metrics',
  '/api/metrics/prometheus'
] as const

/** Answers that are streams: what counts is a piece of 250 rows, behind which others have their turn. */
const exportPieces = new Map([['/api/activity/export', 20], ['/api/activity/export?fmt=csv', 20]])

/** Milliseconds. */
export interface ListResult {
  readonly p50: number
  readonly p99: number
  /** Of the gateway, each request. */
  readonly cpu: number
  readonly bytes: number
}

export interface ListsResult {
  readonly routes: ReadonlyMap<string, ListResult>
  /** From start to listening, and processor time up to then: medians, in milliseconds. */
  readonly starts: Readonly<Record<'empty' | 'full', { readonly ms: number, readonly cpu: number }>>
}

export interface Bar { readonly name: string, readonly value: number, readonly limit: string, readonly ok: boolean }

/** A home with a large fleet, a large registry and a long history, beside an empty one. */
export async function measureLists (folder: string, requests: number): Promise<ListsResult> {
  const [empty, full] = [join(folder, 'empty'), join(folder, 'full')]
  await mkdir(join(empty, 'etc/svc/slots'), { recursive: true })
  await fill(full)
  // the first start of a home makes its database, and the rows
  await (await startProgram('lists-gateway', [empty])).stop()
  await (await startProgram('lists-gateway', [full, String(AMOUNTS.rows)])).stop()
  const runs = { empty: { ms: [] as number[], cpu: [] as number[] }, full: { ms: [] as number[], cpu: [] as number[] } }
  for (let round = 0; round < 5; round++) {
    for (const [name, home] of [['empty', empty], ['full', full]] as const) {
      const server = await startProgram('lists-gateway', [home])
      runs[name].ms.push(server.ready.listeningMs as number)
      runs[name].cpu.push(await server.cpuMs())
      await server.stop()
    }
  }
  type Runs = typeof runs.empty
  const middle = ({ ms, cpu }: Runs): { ms: number, cpu: number } => ({ ms: percentile(ms, 50), cpu: percentile(cpu, 50) })
  const server = await startProgram('lists-gateway', [full])
  try {
    const routes = new Map<string, ListResult>()
    for (const url of [...listRoutes, ...exportPieces.keys()]) routes.set(url, await measure(server, url, requests))
    return { routes, starts: { empty: middle(runs.empty), full: middle(runs.full) } }
  } finally {
    await server.stop()
  }
}

async function fill (home: string): Promise<void> {
  const [config, state] = [join(home, 'etc/svc'), join(home, 'var/lib/svc')]
  await mkdir(join(config, 'slots'), { recursive: true })
  await mkdir(join(state, 'registry'), { recursive: true })
  await writeFile(join(config, 'svc.toml'), '[slots]\nautostart = false\n[server]\nlog_level = "warn"\n')
  for (let i = 0; i < AMOUNTS.slots; i++) {
    const type = i % 10 === 9 ? 'embedding' : 'llm'
    await writeFile(join(config, `slots/slot-${i}.toml`),
      `type = "${type}"\ndevice = "cpu"\nport = ${7_900 + i}\n` +
      `[model]\ndefault = "model-${i}"\ncontext_size = 8192\n` +
      '[server]\nextra_args = "--threads 4"\n')
  }
  const models = Array.from({ length: AMOUNTS.models }, (_, i) =>
    `[models.model-${i}]\nname = "Model ${i}"\npath = "${state}/models/llamacpp/chat/model-${i}/model-${i}.Q4_K_M.gguf"\n` +
    `size_bytes = ${4_000_000_000 + i}\n` +
    'quant = "Q4_K_M"\nlicense = "apache-2.0"\ncapabilities = ["chat"]\ntags = ["tool-calling", "general"]\n' +
    `hf_repo = "someone/Model-${i}-GGUF"\nhf_filename = "model-${i}.Q4_K_M.gguf"\n` +
    `[models.model-${i}.defaults]\ncontext_size = 16384\n` +
    `[models.model-${i}.metadata]\ncontext_length = 131072\nadded_at = 1700000000\n`)
  await writeFile(join(state, 'registry/registry.toml'), models.join('\n'))
}

/** One request after the other, after some that warm it up. */
async function measure (server: BenchServer, path: string, requests: number): Promise<ListResult> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const once = (): Promise<number> => new Promise((resolve, reject) => {
    get(`${server.origin}${path}`, { agent }, answer => {
      let size = 0
      answer.on('data', (chunk: Buffer) => { size += chunk.length })
      answer.on('end', () => answer.statusCode === 200 ? resolve(size) : reject(new Error(`${path} answered ${String(answer.statusCode)}`)))
    }).on('error', reject)
  })
  let bytes = 0
  for (let i = 0; i < 10; i++) bytes = await once()
  const times: number[] = []
  const before = await server.cpuMs()
  for (let i = 0; i < requests; i++) {
    const from = performance.now()
    await once()
    times.push(performance.now() - from)
  }
  const cpu = (await server.cpuMs() - before) / requests
  agent.destroy()
  return { p50: percentile(times, 50), p99: percentile(times, 99), cpu, bytes }
}

export function listBars ({ routes, starts }: ListsResult): Bar[] {
  const costs = [...routes].map(([path, { cpu }]) => [path, cpu / (exportPieces.get(path) ?? 1)] as const)
  const heaviest = costs.sort(([, a], [, b]) => b - a)[0]!
  const [slowest, { p99 }] = [...routes].sort(([, a], [, b]) => b.p99 - a.p99)[0]!
  const ratio = starts.full.ms / starts.empty.ms
  return [
    { name: `p99 of the slowest list, ms (${slowest})`, value: p99, limit: '< 50', ok: p99 < 50 },
    { name: `processor time of one answer, ms (${heaviest[0]})`, value: heaviest[1], limit: '<= 5', ok: heaviest[1] <= 5 },
    { name: 'start with a full home, of an empty one', value: ratio, limit: '<= 2.00', ok: ratio <= 2 }
  ]
}

export function listLines ({ routes, starts }: ListsResult): string[] {
  const number = (value: number, width: number): string => value.toFixed(1).padStart(width)
  const rows = [...routes].map(([path, { p50, p99, cpu, bytes }]) =>
    `${path.padEnd(44)} ${number(p50, 8)} ${number(p99, 8)} ${number(cpu, 8)} ${number(bytes / 1024, 10)}`)
  const start = (name: 'empty' | 'full'): string => `${starts[name].ms.toFixed(0)} ms (${starts[name].cpu.toFixed(0)} of processor time)`
  const { slots, models, rows: audit } = AMOUNTS
  return [
    `\n${slots} slots, ${models} models, ${audit} audit rows            p50 ms   p99 ms   cpu ms        KiB`,
    ...rows,
    `start to listening: ${start('full')}, with an empty home ${start('empty')}`
  ]
}
