import { readdir } from 'node:fs/promises'
import { Random } from '../kernel/slots/random.js'
import { Clients } from './clients.js'
import { Gremlins } from './gremlins.js'
import { Ledger, type LedgerReport } from './ledger.js'
import { replay } from './replay.js'
import { createWorld, slots, slotTypes, type World } from './world.js'

export interface StormOptions {
  readonly seed: number
  /** The storm ends after this many requests, or after this long, whichever comes first. */
  readonly requests: number
  readonly seconds: number
  /** It goes on past its time until there were so many requests: on a machine that has other work they come slowly. */
  readonly least?: number
  readonly clients: number
  /** Requests between two faults. */
  readonly calm: number
  readonly onProgress?: (done: number, faults: number) => void
}

export interface StormReport extends LedgerReport {
  readonly faults: Readonly<Record<string, number>>
  readonly steps: number
  /** Heap after a full collection, in bytes, once warm and at the end; null where collections cannot be asked for. */
  readonly heap: { readonly before: number, readonly after: number } | null
  /** What is still there after the gateway has stopped. */
  readonly left: readonly string[]
}

const OUTCOME_DEADLINE_MS = 30_000

/** Runs a gateway through a storm and looks at what is left of it. */
export async function storm (options: StormOptions): Promise<StormReport> {
  const ledger = new Ledger()
  const resources = countResources()
  const random = new Random(options.seed)
  const world = await createWorld(random)
  const clients = new Clients(world.gateway.baseUrl, ledger, random)
  const gremlins = new Gremlins(world, ledger, random)
  const left: string[] = []
  let heap: { before: number, after: number } | null = null
  try {
    const before = await rage(options, world, clients, gremlins)
    await gremlins.leave()
    await calm(world, clients, ledger)
    heap = before === null ? null : { before, after: heapNow(world)! }
  } finally {
    await clients.close()
    await world.close()
  }
  if (world.runtime.running > 0) left.push(`${world.runtime.running} engines`)
  await settled()
  for (const [kind, count] of countResources()) {
    if (count > (resources.get(kind) ?? 0)) left.push(`${count - (resources.get(kind) ?? 0)} ${kind}`)
  }
  for (const problem of replay(world.events)) ledger.violation(`replay: ${problem}`)
  return { ...ledger.report(), faults: gremlins.counts, steps: world.events.length, heap, left }
}

/** Requests from all clients at once, with a fault every now and then. Returns the heap at a quarter of the way. */
async function rage (options: StormOptions, world: World, clients: Clients, gremlins: Gremlins): Promise<number | null> {
  const end = performance.now() + options.seconds * 1000
  let started = 0
  let done = 0
  let faults = 0
  let warm: number | null = null
  const client = async (): Promise<void> => {
    while (started < options.requests && (performance.now() < end || started < (options.least ?? 0))) {
      if (++started % options.calm === 0) {
        gremlins.strike()
        faults++
      }
      await clients.one()
      if (++done % 100 === 0) options.onProgress?.(done, faults)
      warm ??= isWarm(started / options.requests, end, options.seconds) ? heapNow(world) : null
    }
  }
  await Promise.all(Array.from({ length: options.clients }, client))
  return warm
}

function isWarm (share: number, end: number, seconds: number): boolean {
  return share > 0.25 || performance.now() > end - seconds * 750
}

/** Every slot comes back, nothing waits, nothing is held. */
async function calm (world: World, clients: Clients, ledger: Ledger): Promise<void> {
  const { gateway } = world
  const { gpu } = gateway.gateway.inference()
  const soon = AbortSignal.timeout(OUTCOME_DEADLINE_MS)
  gpu.switchTo('llm', { force: true })
  await gpu.settled(soon)
  const verb = async (slot: string, name: string): Promise<void> => {
    const answer = await gateway.fetch(`/api/slots/${slot}/${name}`, { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } })
    if (answer.status !== 200) ledger.violation(`after the storm: slot ${slot} does not come back: ${answer.status} ${await answer.text()}`)
  }
  for (const slot of slots.filter(slot => slot !== 'img')) {
    await verb(slot, 'restart')
    if (slotTypes[slot] === 'llm') await clients.must('/v1/chat/completions', { model: slot, messages: [{ role: 'user', content: 'hi' }] })
  }
  await verb('img', 'load')
  await clients.must('/v1/images/generations', { model: 'img', prompt: 'the sun', response_format: 'b64_json' })
  if (gpu.status().mode !== 'img' || gateway.slots.status('agent').state !== 'offline') ledger.violation('an image was made beside a language model')
  gpu.switchTo('llm', { force: true })
  await gpu.settled(soon)
  await clients.must('/v1/embeddings', { model: 'embed', input: 'a' })
  const active = (): number => gateway.gateway.inference().dispatcher.active.size
  const end = performance.now() + OUTCOME_DEADLINE_MS
  while (active() > 0 && performance.now() < end) await new Promise(resolve => { setTimeout(resolve, 10) })
  if (active() > 0) ledger.violation(`${active()} requests have no outcome in the gateway`)
  for (const slot of slots) {
    const { inFlight, waiting, state } = gateway.slots.status(slot)
    if (inFlight !== 0 || waiting !== 0) ledger.violation(`slot ${slot} is ${state} with ${inFlight} in flight and ${waiting} waiting`)
  }
  // a write may be under way at any moment: what counts is a file that stays
  let temporary = new Set(await tempFiles(gateway.home))
  while (temporary.size > 0 && performance.now() < end) {
    await new Promise(resolve => { setTimeout(resolve, 10) })
    temporary = new Set((await tempFiles(gateway.home)).filter(name => temporary.has(name)))
  }
  for (const name of temporary) ledger.violation(`temp file ${name}`)
}

/** Links are not followed: the plugin home has one to the whole gateway. */
async function tempFiles (home: string): Promise<string[]> {
  const found: string[] = []
  const walk = async (folder: string): Promise<void> => {
    for (const entry of await readdir(folder, { withFileTypes: true })) {
      const path = `${folder}/${entry.name}`
      if (entry.isDirectory()) await walk(path)
      else if (/\.(tmp|part)$|\/spool\//.test(path)) found.push(path)
    }
  }
  await walk(`${home}/var/lib/svc`)
  return found
}

function countResources (): Map<string, number> {
  const counts = new Map<string, number>()
  for (const kind of process.getActiveResourcesInfo()) {
    // the terminal's own
    if (kind !== 'PipeWrap' && kind !== 'TTYWrap') counts.set(kind, (counts.get(kind) ?? 0) + 1)
  }
  return counts
}

/** Sockets and timers go a moment after what they belonged to. */
async function settled (): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await new Promise(resolve => { setTimeout(resolve, 10) })
}

function heapNow (world: World): number | null {
  if (globalThis.gc === undefined) return null
  world.forget()
  globalThis.gc()
  return process.memoryUsage().heapUsed
}
