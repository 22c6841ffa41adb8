import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { openWebui } from '../../plugins/services/companions/open-webui.js'
import { Random } from '../kernel/slots/random.js'
import { freePort } from '../ports.js'
import { tinyRegistry } from '../plugins/services/tiny-registry.js'
import { containersOf, standInImage } from '../rings/support/stand-in.js'
import { leftTempFiles } from './left-files.js'
import { areas } from './verb-areas.js'
import { VerbCaller, type VerbCounts } from './verb-caller.js'
import { createVerbWorld, processesOf, type VerbWorld } from './verb-world.js'

export interface VerbsOptions {
  readonly seed: number
  readonly minutes: number
  readonly onProgress?: (text: string) => void
  /** Ends it early, and cleans up all the same. */
  readonly signal?: AbortSignal
}

export interface VerbsReport {
  readonly seed: number
  readonly seconds: number
  readonly engine: 'docker' | 'process'
  /** By method and route: how often each status was the answer. */
  readonly answers: Readonly<Record<string, VerbCounts>>
  /** The longest answers, longest first. */
  readonly slowest: ReturnType<VerbCaller['slowest']>
  readonly left: readonly string[]
  readonly violations: readonly string[]
}

const WORKERS = 6
const CALM_MS = 120_000

/** Random verbs on services, agents, board, approvals and updates of a whole gateway, and a look at what is left of them. */
export async function verbs (options: VerbsOptions): Promise<VerbsReport> {
  const { seed, minutes, signal, onProgress } = options
  const closers: Array<() => unknown> = []
  const before = resources()
  const folder = mkdtempSync(join(tmpdir(), 'svc-verbs-'))
  // what the gateway and its installers leave in the machine's temporary folder shows here
  const [temporary, place] = [join(folder, 'tmp'), process.env.TMPDIR]
  mkdirSync(temporary)
  process.env.TMPDIR = temporary
  const violations: string[] = []
  const left: string[] = []
  const caller = new VerbCaller(problem => { if (violations.length < 50) violations.push(problem) })
  const from = performance.now()
  const nodeImage = process.env.SVC_TEST_SPEECH_IMAGE
  const host = nodeImage === undefined ? null : process.env.SVC_TEST_DOCKER_HOST ?? null
  try {
    if (host !== null && nodeImage !== undefined) {
      const image = await standInImage(host, nodeImage, openWebui.container!.image)
      closers.push(() => image.remove())
    }
    const registry = await tinyRegistry({ teardown: (close: () => unknown) => { closers.push(close) } } as never)
    const home = join(folder, 'home')
    mkdirSync(home)
    const [port, agentPort] = [await freePort(), await freePort()]
    const world = await createVerbWorld({ home, folder, host, registry: registry.url, port, agentPort })
    try {
      const end = performance.now() + minutes * 60_000
      const random = new Random(seed)
      const goesOn = (): boolean => performance.now() < end && signal?.aborted !== true && violations.length < 20
      const worker = async (own: Random): Promise<void> => {
        while (goesOn()) {
          await own.pick(areas)(world, caller, own)
          await wait(own.int(150))
        }
      }
      const telling = setInterval(() => onProgress?.(`${caller.total} answers, ${violations.length} broken promises`), 15_000)
      await Promise.all(Array.from({ length: WORKERS }, () => worker(new Random(random.int(2 ** 31)))))
      clearInterval(telling)
      await calm(world, caller, left)
      left.push(...world.effects.odd())
    } finally {
      await world.close().catch((error: unknown) => { violations.push(`the gateway does not stop: ${String(error)}`) })
    }
    left.push(...await leftOf(world, home, host), ...readdirSync(temporary).map(name => `temporary file ${name}`))
  } finally {
    if (place === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = place
    await caller.close()
    for (const close of closers.reverse()) await close()
    rmSync(folder, { recursive: true, force: true })
  }
  await wait(1_000)
  for (const [kind, count] of resources()) {
    if (count > (before.get(kind) ?? 0)) left.push(`${count - (before.get(kind) ?? 0)} ${kind}`)
  }
  return {
    seed,
    seconds: Math.round((performance.now() - from) / 1000),
    engine: host === null ? 'process' : 'docker',
    answers: caller.counts(),
    slowest: caller.slowest(),
    left,
    violations
  }
}

/** Everything is ended by its own verb, which has to work now. */
async function calm (world: VerbWorld, caller: VerbCaller, left: string[]): Promise<void> {
  const until = performance.now() + CALM_MS
  const must = async (what: string, look: () => Promise<boolean>): Promise<void> => {
    while (!await look()) {
      if (performance.now() > until) return void left.push(`after the storm: ${what}`)
      await wait(200)
    }
  }
  const get = async <T>(path: string): Promise<T> => {
    const { status, json } = await caller.call(world, 'GET', path)
    if (status !== 200) throw new Error(`GET ${path}: ${status} ${JSON.stringify(json)}`)
    return json as T
  }
  await caller.call(world, 'POST', '/api/services/mdns', { body: { advertise: false } })
  for (const id of ['openwebui', 'hermes', 'hindsight']) {
    for (const action of ['disable', 'stop']) {
      await must(`${action} of ${id} fails`, async () => {
        const { json } = await caller.call(world, 'POST', `/api/services/${id}/action`, { body: { action } })
        return (json as { ok?: boolean }).ok === true
      })
    }
  }
  await must('openwebui is not uninstalled', async () => (await caller.call(world, 'DELETE', '/api/services/openwebui/install?data=true')).status === 204)
  await must('agents are left', async () => {
    const { agents } = await get<{ agents: Array<{ name: string }> }>('/api/agents')
    for (const { name } of agents) await caller.call(world, 'DELETE', `/api/agents/${name}`)
    return agents.length === 0
  })
  for (;;) {
    const { approvals } = await get<{ approvals: Array<{ id: string }> }>('/api/agent/approvals?state=pending')
    if (approvals.length === 0) break
    for (const { id } of approvals) await caller.call(world, 'POST', `/api/agent/approvals/${id}/deny`)
  }
  for (const { slug } of await get<Array<{ slug: string }>>('/api/board/boards')) {
    const { lanes } = await get<{ lanes: Record<string, Array<{ id: string }>> }>(`/api/board?board=${slug}`)
    for (const task of Object.values(lanes).flat()) await caller.call(world, 'DELETE', `/api/board/tasks/${task.id}?board=${slug}`)
  }
  await must('agents work at tasks that are gone', async () => (await processesOf(world.home)).length === 0)
}

async function leftOf ({ home, folder }: VerbWorld, ownHome: string, host: string | null): Promise<string[]> {
  const left = leftTempFiles(ownHome).map(name => `temp file ${name}`)
  for (const pid of await processesOf(home)) left.push(`process ${pid}`)
  if (host !== null) for (const id of await containersOf(host, home)) left.push(`container ${id}`)
  for (const name of ['agents/asks', 'agents/serves', 'api-services/openwebui']) {
    const files = ls(join(home, 'var/lib/svc/plugin-state', name))
    if (files.length > 0) left.push(`${name} has ${files.join(', ')}`)
  }
  for (const name of ls(join(folder, 'avahi'))) if (name !== 'printer.service') left.push(`announcement ${name}`)
  if (!ls(join(folder, 'avahi')).includes('printer.service')) left.push('the announcement of another program is gone')
  return left
}

function ls (folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

function resources (): Map<string, number> {
  const counts = new Map<string, number>()
  for (const kind of process.getActiveResourcesInfo()) {
    // the terminal's own
    if (kind !== 'PipeWrap' && kind !== 'TTYWrap') counts.set(kind, (counts.get(kind) ?? 0) + 1)
  }
  return counts
}
