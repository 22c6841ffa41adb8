import { randomBytes } from 'node:crypto'
import { appendFile, mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import {
  createLineSplitter, pause, type AgentDescriptor, type AgentErrand,
  type Clock, type DaemonService, type GatewayInfo, type Programs
} from 'svc-gateway/plugin'
import type { Environments, PackageOrder } from '../../api/services/ref.js'
import { dataOf, logsOf, makeData, secretOf, writeFiles } from './data.js'
import { agentError } from './errors.js'
import { runOf, type KnownAgents } from './known-agents.js'
import type { AgentRecord } from './record.js'
import type { AgentPhase, AgentRun, Errand, InstallForm } from './ref.js'

export interface PhaseDeps {
  readonly clock: Clock
  readonly daemons: DaemonService
  readonly programs: Programs
  readonly environments: Environments
  readonly info: Pick<GatewayInfo, 'baseUrl'>
  /** Port of the gateway, for as long as it does not listen. */
  readonly port: () => number
  readonly known: KnownAgents
  /** Folder that has one for each agent. */
  readonly root: () => string
  /** Aborts when the plugin goes. */
  readonly signal: AbortSignal
}

export interface PhaseOutcome {
  readonly details: Readonly<Record<string, unknown>>
  readonly change?: Partial<AgentRecord>
}

interface WiredRun extends AgentRun {
  readonly serverArgs: readonly string[]
  /** Where its server speaks JSON-RPC. */
  readonly socket: URL | null
}

/** A start of a Python program takes up to a minute on a small machine. */
const UP_MS = 90_000
const LOOK_EVERY_MS = 250
const ASK_MS = 2_000

/** The steps that bring an agent. Each can be done again: what it finds done stays as it is. */
export class PhaseWork {
  readonly #deps: PhaseDeps

  constructor (deps: PhaseDeps) {
    this.#deps = deps
  }

  folderOf (id: string): string {
    return join(this.#deps.root(), id)
  }

  /** What the gateway brings of it in a form; null where there is no such form. */
  orderOf (
    { install = {} }: AgentDescriptor, form: InstallForm, version: string | null
  ): PackageOrder | { readonly image: string } | null {
    const { npm, python, container } = install
    if (form === 'container') return container === undefined ? null : { image: container.image }
    if (form === 'npm') return npm === undefined ? null : { npm: { ...npm, version: version ?? npm.version } }
    return python === undefined ? null : { python: { ...python, version: version ?? python.version } }
  }

  async run (phase: AgentPhase, agent: AgentDescriptor, record: AgentRecord): Promise<PhaseOutcome> {
    switch (phase) {
      case 'packages': return await this.#packages(agent, record)
      // the lifecycle does it: it is about another agent
      case 'replace': return { details: {} }
      case 'data': return { details: { ...await makeData(this.folderOf(agent.id)) } }
      case 'wiring': return { details: { files: Object.keys((await this.#wire(agent, record)).files) } }
      case 'start': return { details: await this.launch(agent, record) }
      case 'probe': return { details: await this.probe(agent, record) }
    }
  }

  async #packages (agent: AgentDescriptor, record: AgentRecord): Promise<PhaseOutcome> {
    const { environments, daemons, signal } = this.#deps
    const { form, wanted_version: version } = record
    const order = this.orderOf(agent, form, version)
    if (order === null) throw agentError('agent.install_failed', `${agent.name} no longer comes as ${form}`)
    const onMessage = (message: string): void => { void this.write(agent.id, 'packages', message) }
    if ('image' in order) {
      await daemons.fetch(order.image, { signal, onMessage })
      return { details: { image: order.image } }
    }
    const folder = this.folderOf(agent.id)
    // what an installation left that was cut off
    await environments.sweep(folder, record.environment)
    const environment = await environments.install(order, { folder, signal, onMessage })
    const previous = record.environment === null ? null : { environment: record.environment, version: record.version }
    const { package: name, version: installed } = order.npm ?? order.python!
    return { details: { package: name, version: installed }, change: { environment, version: installed, previous } }
  }

  /** Null for a container, and before it is there. */
  programOf ({ program, id }: Pick<AgentDescriptor, 'program' | 'id'>, { form, environment }: Pick<AgentRecord, 'form' | 'environment'>): string | null {
    if (form === 'container' || environment === null) return null
    return join(this.folderOf(id), environment, form === 'npm' ? 'node_modules/.bin' : 'bin', program)
  }

  async #wire (agent: AgentDescriptor, record: AgentRecord): Promise<WiredRun> {
    const run = await this.#planned(agent, record)
    await writeFiles(dataOf(this.folderOf(agent.id)), run.files)
    return run
  }

  async #planned (agent: AgentDescriptor, { form }: AgentRecord): Promise<WiredRun> {
    const { info, known, port, signal } = this.#deps
    const folder = this.folderOf(agent.id)
    const data = dataOf(folder)
    const gateway = info.baseUrl ?? `http://127.0.0.1:${port()}`
    const seen = form === 'container' ? agent.install?.container?.data ?? data : data
    const world = await known.world(agent, { gateway, folder: seen, secret: await secretOf(folder) }, signal)
    const run = runOf(agent, world)
    const { args, socket, port: at } = agent.server ?? {}
    return {
      ...run, serverArgs: args?.(world) ?? [], socket: socket === undefined ? null : new URL(socket(world), `ws://127.0.0.1:${at}`)
    }
  }

  /** Where its server speaks JSON-RPC; null for one that does not. */
  async socket (agent: AgentDescriptor, record: AgentRecord, anew: boolean): Promise<URL | null> {
    return (await (anew ? this.#wire(agent, record) : this.#planned(agent, record))).socket
  }

  /** Wires it, and starts its server where it has one. What runs already from the same wiring goes on. */
  async launch (agent: AgentDescriptor, record: AgentRecord): Promise<Readonly<Record<string, unknown>>> {
    const { daemons, signal } = this.#deps
    const { id, server, install = {} } = agent
    const run = await this.#wire(agent, record)
    if (server === undefined) return { server: false }
    const data = dataOf(this.folderOf(id))
    const { port } = server
    const place = { id: daemonOf(id), host: '127.0.0.1', port }
    const command = this.programOf(agent, record)
    if (command === null) {
      // its packages never came, or its plugin describes no image any more
      if (record.form !== 'container' || install.container === undefined) {
        throw agentError('agent.restart_failed', `nothing of ${agent.name} is here to start: \`svc agent reprovision ${id} --repair\` brings it`)
      }
      const { image, data: target } = install.container
      const mounts = [{ source: data, target, readOnly: false }]
      await daemons.run({ ...place, env: run.env, form: { kind: 'container', image, command: run.serverArgs, mounts } }, { signal })
    } else {
      const form = { kind: 'process', command, args: run.serverArgs, workingDir: data } as const
      await daemons.run({ ...place, env: this.#envOf(command, data, run.env), form }, { signal })
    }
    return { server: true, port }
  }

  /** Runs of its program for one task each; null where it takes none. */
  errands (agent: AgentDescriptor, record: AgentRecord): ((prompt: string) => Promise<Errand>) | null {
    const isWhole = record.installed_at !== null && record.problem === null && this.programOf(agent, record) !== null
    return agent.task === undefined || !isWhole ? null : prompt => this.#errand(agent, agent.task!, record, prompt)
  }

  async #errand (agent: AgentDescriptor, task: AgentErrand, record: AgentRecord, prompt: string): Promise<Errand> {
    const { args, env } = await this.#wire(agent, record)
    const folder = dataOf(this.folderOf(agent.id))
    const program = this.programOf(agent, record)!
    const report = join(folder, `report-${randomBytes(6).toString('hex')}`)
    return {
      program,
      args: [...args, ...task.args(prompt, report)],
      env: this.#envOf(program, folder, env),
      folder,
      problem: async () => {
        const written = await readFile(report, 'utf8').catch(() => null)
        await rm(report, { force: true })
        return task.problem?.(written) ?? null
      }
    }
  }

  /** Asks whether it works. Throws `agent.restart_failed`. */
  async probe (agent: AgentDescriptor, record: AgentRecord): Promise<Readonly<Record<string, unknown>>> {
    const { server, probe } = agent
    if (server !== undefined) return await this.#untilUp(agent, `http://127.0.0.1:${server.port}${server.probe}`)
    const program = this.programOf(agent, record)
    if (probe === undefined || program === null) return { asked: false }
    const { args, env } = await this.#wire(agent, record)
    const data = dataOf(this.folderOf(agent.id))
    const { programs, signal } = this.#deps
    const started = await programs.run({
      purpose: 'agent-probe', env: this.#envOf(program, data, env), form: { kind: 'process', command: program, args: [...args, ...probe.args] }
    }, { signal })
    const last: string[] = []
    try {
      const { stdin, stdout, stderr } = started.pipes!
      stdin.on('error', () => undefined) // it may end before it has read
      stdin.write(probe.line === null ? '' : `${probe.line}\n`)
      if (probe.line === null) stdin.end()
      stderr.resume()
      const answered = (async () => {
        const splitter = createLineSplitter()
        for await (const chunk of stdout as AsyncIterable<Buffer>) {
          for (const line of splitter.push(chunk)) {
            last.push(line.slice(0, 500))
            if (probe.expect.test(line)) return true
          }
        }
        return false
      })()
      const ended = AbortSignal.any([signal, AbortSignal.timeout(UP_MS)])
      const late = new Promise<false>(resolve => ended.addEventListener('abort', () => resolve(false), { once: true }))
      if (await Promise.race([answered, late])) return { asked: true }
    } finally {
      await started.stop(1)
    }
    signal.throwIfAborted()
    throw agentError('agent.restart_failed', `${agent.name} does not answer as it should: ${last.slice(-2).join(' | ') || 'it wrote nothing'}`)
  }

  async #untilUp ({ id, name }: AgentDescriptor, url: string): Promise<Readonly<Record<string, unknown>>> {
    const { clock, daemons, signal } = this.#deps
    const began = clock.monotonic()
    for (;;) {
      const status = await fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(ASK_MS), headers: { connection: 'close' } })
        .then(async answer => {
          await answer.body?.cancel()
          return answer.status
        }, () => null)
      if (status !== null && status < 400) return { asked: true, status }
      const { state, problem } = daemons.status(daemonOf(id))
      if (state !== 'running') throw agentError('agent.restart_failed', problem ?? `${name} does not run`)
      if (clock.monotonic() - began > UP_MS) throw agentError('agent.restart_failed', `${name} runs and does not answer at ${url}`)
      await pause(clock, LOOK_EVERY_MS, signal)
      signal.throwIfAborted()
    }
  }

  /** What it writes outside of its folder would stay when it is uninstalled. */
  #envOf (program: string, data: string, env: Readonly<Record<string, string>>): Record<string, string> {
    return { PATH: `${join(program, '..')}:${process.env.PATH ?? ''}`, HOME: data, PYTHONUNBUFFERED: '1', ...env }
  }

  /** A line of a phase's log. Never rejects: a disk that is full is told by the phase itself. */
  async write (id: string, phase: AgentPhase, line: string): Promise<void> {
    const folder = logsOf(this.folderOf(id))
    const text = `${new Date(this.#deps.clock.now()).toISOString()} ${line}\n`
    await mkdir(folder, { recursive: true, mode: 0o700 }).then(() => appendFile(join(folder, `${phase}.log`), text)).catch(() => undefined)
  }
}

export function daemonOf (id: string): string {
  return `agent-${id}`
}
