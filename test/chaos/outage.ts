import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Docker from 'dockerode'
import { bigramGguf } from '../../plugins/services/demo/bigram-gguf.js'
import { Random } from '../kernel/slots/random.js'
import { FakeHub } from '../plugins/services/hub/fake-hub.js'
import { chat, readStream, writeHome } from '../e2e/live-gateway.js'
import { DockerProxy } from './docker-proxy.js'
import { FaultyDisk } from './faulty-disk.js'
import { leftTempFiles } from './left-files.js'
import { OutageGateway } from './outage-gateway.js'
import { Pulls } from './pulled.js'
import { Truth } from './truth.js'
import { ANYTHING, Caller, readAll, Writer, type WriteCounts } from './writers.js'

export interface OutageOptions {
  readonly seed: number
  readonly minutes: number
  readonly onProgress?: (text: string) => void
  /** Ends it early, and cleans up all the same. */
  readonly signal?: AbortSignal
}

export interface OutageReport {
  readonly seed: number
  readonly seconds: number
  readonly engine: string
  readonly starts: {
    readonly count: number
    readonly refusedByDisk: number
    readonly medianMs: number
    readonly longestMs: number
  }
  readonly ends: Readonly<Record<string, number>>
  readonly faults: Readonly<Record<string, number>>
  readonly writes: ReadonlyMap<string, WriteCounts>
  readonly readings: number
  readonly audited: number
  readonly pulls: { readonly taken: number, readonly completed: number, readonly full: number }
  readonly streams: Readonly<Record<string, number>>
  readonly problems: readonly string[]
}

const WRITERS = 5
const STREAMS = 2
const HOME_MB = 96
const SECOND = 1_000
const AUDIT_KEPT = 200

const sleep = (ms: number): Promise<void> => new Promise(resolve => { setTimeout(resolve, ms) })

/**
 * Kills a gateway every few seconds while clients write and stream, its disk fills and freezes, its clock jumps, and its
 * container engine stalls, breaks and dawdles; reads back every acknowledged write after each start.
 */
export async function outage (options: OutageOptions): Promise<OutageReport> {
  const run = await Outage.prepare(options)
  try {
    return await run.toItsEnd()
  } finally {
    await run.close()
  }
}

class Outage {
  readonly #options: OutageOptions
  readonly #random: Random
  readonly #folder: string
  readonly #disk: FaultyDisk | null
  readonly #home: string
  readonly #proxy: DockerProxy | null
  readonly #docker: Docker | null
  readonly #caller = new Caller()
  readonly #truth = new Truth()
  readonly #pulls: Pulls
  readonly #writers: readonly Writer[]
  readonly #closers: Array<() => unknown>
  readonly #writes = new Map<string, WriteCounts>()
  readonly #ends: Record<string, number> = {}
  readonly #faults: Record<string, number> = {}
  readonly #streams: Record<string, number> = {}
  readonly #startMs: number[] = []
  readonly #problems: string[] = []
  #audited: string[] = []
  #auditedCount = 0
  #readings = 0
  #refusedStarts = 0
  #gateway: OutageGateway | null = null
  #diskIsIll = false
  #active = false
  #round = 0

  private constructor (
    options: OutageOptions, folder: string, disk: FaultyDisk | null, proxy: DockerProxy | null, docker: Docker | null,
    hub: FakeHub, closers: Array<() => unknown>
  ) {
    this.#options = options
    this.#random = new Random(options.seed)
    this.#folder = folder
    this.#disk = disk
    this.#home = join(folder, 'home')
    this.#proxy = proxy
    this.#docker = docker
    this.#closers = closers
    const told = (problem: string): void => this.#problem(problem)
    hub.pace = { chunk: 64 * 1024, ms: 20 }
    this.#pulls = new Pulls(this.#caller, hub, join(this.#home, 'var/lib/svc/models'), bigramGguf(), told)
    const deps = {
      caller: this.#caller, truth: this.#truth, pulls: this.#pulls, random: this.#random, counts: this.#writes, told,
      file: join(this.#home, 'var/lib/svc/models/demo.gguf'),
      // rows that are lost on a full disk are told of in the health report
      audited: (id: string) => { if (!this.#diskIsIll) this.#audited = [...this.#audited, id].slice(-AUDIT_KEPT) }
    }
    this.#writers = Array.from({ length: WRITERS }, (_, n) => new Writer(n, deps))
  }

  static async prepare (options: OutageOptions): Promise<Outage> {
    const closers: Array<() => unknown> = []
    const folder = mkdtempSync(join(tmpdir(), 'svc-chaos-'))
    const home = join(folder, 'home')
    mkdirSync(home)
    const disk = FaultyDisk.mount(home, HOME_MB)
    closers.push(() => rmSync(folder, { recursive: true, force: true }), () => disk?.unmount())
    const hub = await FakeHub.start({ teardown: (close: () => unknown) => { closers.push(close) } } as never)
    const host = process.env.SVC_TEST_DOCKER_HOST
    const target = host?.startsWith('unix://') === true && process.env.SVC_TEST_LLAMA_IMAGE !== undefined ? host.slice(7) : null
    const proxy = target === null ? null : await DockerProxy.start(join(folder, 'docker.sock'), target)
    if (proxy !== null) closers.push(() => proxy.close())
    await writeHome(home, {
      'etc/svc/svc.toml': '[slots]\nautostart = false\n[models]\nauto_scan_on_start = false\n' +
        (proxy === null ? '[runtime]\ndriver = "process"\n' : '') + '[plugins.config.pull]\nreserve_mb = 0\nretry_base_s = 0.2\n',
      'etc/svc/api.env': `HF_ENDPOINT="${hub.url}"\nno_proxy="*"\n`,
      'etc/svc/slots/agent.toml': 'device = "cpu"\nidle_timeout_s = 0\n[model]\ndefault = "demo"\n',
      'var/lib/svc/models/demo.gguf': bigramGguf(),
      'var/lib/svc/registry/registry.toml': `[models.demo]\npath = "${home}/var/lib/svc/models/demo.gguf"\n`
    })
    return new Outage(options, folder, disk, proxy, target === null ? null : new Docker({ socketPath: target }), hub, closers)
  }

  async toItsEnd (): Promise<OutageReport> {
    const from = performance.now()
    const end = from + this.#options.minutes * 60 * SECOND
    const goesOn = (): boolean => performance.now() < end && this.#problems.length < 20 && this.#options.signal?.aborted !== true
    while (goesOn()) await this.#live(false)
    await this.#live(true)
    const starts = [...this.#startMs].sort((a, b) => a - b)
    return {
      seed: this.#options.seed,
      seconds: Math.round((performance.now() - from) / SECOND),
      engine: this.#proxy === null ? 'child processes' : 'docker behind a proxy',
      starts: {
        count: starts.length,
        refusedByDisk: this.#refusedStarts,
        medianMs: starts[starts.length >> 1] ?? 0,
        longestMs: starts.at(-1) ?? 0
      },
      ends: this.#ends,
      faults: this.#faults,
      writes: this.#writes,
      readings: this.#readings,
      audited: this.#auditedCount,
      pulls: this.#pulls.counts,
      streams: this.#streams,
      problems: this.#problems
    }
  }

  async close (): Promise<void> {
    await this.#gateway?.end('SIGKILL')
    await this.#caller.close()
    for (const { Id } of await this.#containers().catch(() => [])) {
      await this.#docker!.getContainer(Id).remove({ force: true }).catch(() => undefined)
    }
    for (const close of this.#closers.reverse()) await close()
  }

  /** One life of the gateway, from its start to its kill; the last one is calm and ends cleanly. */
  async #live (isLast: boolean): Promise<void> {
    this.#round++
    const random = this.#random
    if (isLast) this.#heal()
    else if (this.#round > 1 && random.chance(0.3)) this.#strike()
    const gateway = this.#gateway = await this.#start()
    if (gateway === null) return
    // what may not be written to cannot be swept
    const isSwept = !this.#diskIsIll
    this.#heal()
    try {
      await this.#readBack(isSwept)
      this.#active = true
      const streams = Array.from({ length: STREAMS }, () => this.#busy(() => this.#stream()))
      const work = [...this.#writers.map(writer => this.#busy(() => writer.one())), ...streams]
      await (isLast ? sleep(3 * SECOND) : this.#rage(2 * SECOND + random.int(5 * SECOND)))
      if (isLast) {
        this.#active = false
        await Promise.all(work)
        await this.#calm()
      }
      const how = isLast || random.chance(0.15) ? 'SIGTERM' : 'SIGKILL'
      this.#ends[how] = (this.#ends[how] ?? 0) + 1
      this.#active = false
      const code = await gateway.end(how)
      if (how === 'SIGTERM' && code !== 0) this.#problem(`SIGTERM: ended with ${String(code)}: ${gateway.log.slice(-500)}`)
      await Promise.all(work)
    } catch (error) {
      this.#problem(`${String(error)} ${gateway.log.slice(-1_500)}`)
      await gateway.end('SIGKILL')
    } finally {
      this.#active = false
      this.#gateway = null
    }
    this.#options.onProgress?.(`${this.#round} lives, ${this.#readings} readings, ${this.#problems.length} problems`)
  }

  /** Null when it could not start, for a fault of this run that it told. */
  async #start (): Promise<OutageGateway | null> {
    const from = performance.now()
    const gateway = new OutageGateway(this.#home, {
      CHAOS_CLOCK: join(this.#folder, 'clock'),
      ...(this.#proxy === null ? {} : { DOCKER_HOST: `unix://${join(this.#folder, 'docker.sock')}`, SVC_TOOLBOX_IMAGE_CPU: process.env.SVC_TEST_LLAMA_IMAGE! })
    })
    // an engine host that is silent at the start comes back while it is waited for
    const healing = setTimeout(() => { if (this.#proxy !== null) this.#proxy.mood = 'pass' }, 4 * SECOND + this.#random.int(3 * SECOND))
    try {
      this.#caller.url = await gateway.url()
      this.#startMs.push(Math.round(performance.now() - from))
      return gateway
    } catch (error) {
      await gateway.end('SIGKILL')
      if (this.#diskIsIll && /cannot be written|database|read-only|disk is full/.test(String(error))) this.#refusedStarts++
      else this.#problem(`start: ${String(error)}`)
      this.#heal()
      return null
    } finally {
      clearTimeout(healing)
    }
  }

  async #readBack (isSwept: boolean): Promise<void> {
    const found = await readAll(this.#caller)
    // what the defaults are is not known before the first look
    if (this.#readings === 0) for (const [key, value] of found) this.#truth.acknowledged(key, value)
    for (const key of new Set([...this.#truth.keys(), ...found.keys()])) {
      this.#readings++
      const problem = this.#compare(key, found.get(key) ?? (key.startsWith('cascade') ? 'none' : null))
      if (problem !== null) this.#problem(problem)
    }
    await this.#readAudit()
    await this.#pulls.check()
    const { runtime } = await this.#caller.get('/api/status') as { runtime: { driver: string, reason: string } }
    if (runtime.driver !== (this.#proxy === null ? 'process' : 'docker')) this.#problem(`engines run with ${runtime.driver} now: ${runtime.reason}`)
    const left = isSwept ? leftTempFiles(this.#home) : []
    if (left.length > 0) this.#problem(`temporary files of dead writers: ${left.join(', ')}`)
    await this.#oneEngine()
  }

  #compare (key: string, found: string | null): string | null {
    // while it is put together it may be anything
    if (key.startsWith('cascade') && this.#truth.mayBe(key, ANYTHING)) {
      this.#truth.acknowledged(key, found)
      return null
    }
    return this.#truth.compare(key, found)
  }

  async #readAudit (): Promise<void> {
    const { records } = await this.#caller.get(`/api/activity?kind=action&limit=${2 * AUDIT_KEPT}`) as { records: Array<{ request_id: string }> }
    const rows = new Set(records.map(row => row.request_id))
    for (const id of this.#audited.splice(0)) {
      this.#auditedCount++
      if (!rows.has(id)) this.#problem(`${id} was acknowledged and has no audit row`)
    }
  }

  /** Of each slot at most one container, and none as a child process. */
  async #oneEngine (): Promise<void> {
    if (this.#docker === null) return
    const seen = new Set<string>()
    for (const { Labels, State, Id } of await this.#containers()) {
      const slot = Labels['svc.slot'] ?? ''
      // one that Docker finished making after its gateway had died goes with the next launch
      if (State === 'created') continue
      if (seen.has(slot)) this.#problem(`a second container of slot '${slot}': ${Id.slice(0, 12)} (${State})`)
      seen.add(slot)
    }
  }

  async #containers (): Promise<Docker.ContainerInfo[]> {
    if (this.#docker === null) return []
    const instance = readFileSync(join(this.#home, 'var/lib/svc/instance-id'), 'utf8').trim()
    return await this.#docker.listContainers({ all: true, filters: { label: [`svc.instance=${instance}`] } })
  }

  async #busy (work: () => Promise<void>): Promise<void> {
    while (this.#active) {
      await work()
      await sleep(this.#random.int(60))
    }
  }

  async #stream (): Promise<void> {
    const note = (outcome: string): void => { this.#streams[outcome] = (this.#streams[outcome] ?? 0) + 1 }
    let text = ''
    try {
      const answer = await chat(this.#caller.url, { stream: true })
      if (answer.status !== 200) {
        await answer.text()
        note(`refused ${answer.status}`)
        return void await sleep(200)
      }
      text = await answer.text()
    } catch {
      return note(this.#active ? 'no answer' : 'cut by the kill')
    }
    const { done, error } = readStream(text)
    note(done ? 'answered' : error !== null ? 'ended with an error event' : 'without an end')
    if (!done && error === null) this.#problem(`a stream without an end: …${JSON.stringify(text.slice(-200))}`)
  }

  /** Faults come and go until the time is over. */
  async #rage (ms: number): Promise<void> {
    const end = performance.now() + ms
    while (performance.now() < end) {
      await sleep(200 + this.#random.int(900))
      if (this.#random.chance(0.6)) this.#strike()
      else this.#heal()
    }
  }

  #strike (): void {
    const random = this.#random
    const proxied = this.#proxy === null ? [] : ['docker stalls', 'docker is cut', 'docker is slow']
    const disked = this.#disk === null ? [] : ['disk full', 'folder read-only', 'folder read-only']
    const name = random.pick([...proxied, ...disked, 'clock jumps ahead', 'clock jumps back'])
    this.#faults[name] = (this.#faults[name] ?? 0) + 1
    const day = 24 * 3_600 * SECOND
    switch (name) {
      case 'docker stalls': this.#proxy!.mood = 'stall'; break
      case 'docker is cut': this.#proxy!.mood = 'cut'; break
      case 'docker is slow': this.#proxy!.mood = 'delay'; break
      case 'clock jumps ahead': this.#setClock(random.int(3) * day + random.int(day)); break
      case 'clock jumps back': this.#setClock(-random.int(3) * day - random.int(day)); break
      default:
        this.#diskIsIll = true
        if (name === 'disk full') this.#disk!.fill()
        else this.#disk!.freeze(random.int(10))
    }
  }

  #heal (): void {
    if (this.#proxy !== null) this.#proxy.mood = 'pass'
    this.#disk?.thaw()
    this.#disk?.drain()
    this.#diskIsIll = false
  }

  #setClock (offsetMs: number): void {
    writeFileSync(join(this.#folder, 'clock'), String(offsetMs))
  }

  /** All is well again: pulls end, the slot answers. */
  async #calm (): Promise<void> {
    this.#heal()
    await this.#pulls.settled(60 * SECOND)
    const end = performance.now() + 60 * SECOND
    let last = ''
    for (; performance.now() < end; await sleep(500)) {
      const answer = await chat(this.#caller.url, {}).catch((error: unknown) => error as Error)
      last = answer instanceof Error ? String(answer) : `${answer.status} ${await answer.text()}`
      if (last.startsWith('200')) return await this.#oneEngine()
    }
    this.#problem(`after all of it the slot does not answer: ${last.slice(0, 300)}`)
  }

  #problem (text: string): void {
    this.#problems.push(`life ${this.#round}: ${text}`)
    this.#options.onProgress?.(`PROBLEM ${this.#problems.at(-1)!}`)
  }
}
