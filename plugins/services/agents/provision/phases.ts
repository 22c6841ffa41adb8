import { createLineSplitter, within, type AgentDescriptor, type Programs } from 'svc-gateway/plugin'
import { AgentHome, type HomeDeps } from '../home/agent-home.js'
import { AgentServers, UP_MS, type ServerDeps } from '../home/agent-server.js'
import { makeData } from '../book/data.js'
import { agentError } from '../errors.js'
import { AgentPackages, type PackageDeps } from './packages.js'
import { PhaseLog } from './phase-log.js'
import type { AgentRecord } from '../book/record.js'
import type { AgentPhase } from '../ref.js'

export interface PhaseDeps extends HomeDeps, ServerDeps, PackageDeps {
  readonly programs: Programs
}

export interface PhaseOutcome {
  readonly details: Readonly<Record<string, unknown>>
  readonly change?: Partial<AgentRecord>
}

/** The steps that bring an agent. Each can be done again: what it finds done stays as it is. */
export class PhaseWork {
  readonly home: AgentHome
  readonly packages: AgentPackages
  readonly servers: AgentServers
  readonly log: PhaseLog
  readonly #deps: PhaseDeps

  constructor (deps: PhaseDeps) {
    this.#deps = deps
    this.home = new AgentHome(deps)
    this.packages = new AgentPackages(deps, this.home)
    this.servers = new AgentServers(deps, this.home)
    this.log = new PhaseLog(id => this.home.folderOf(id), deps.clock)
  }

  async run (phase: AgentPhase, agent: AgentDescriptor, record: AgentRecord): Promise<PhaseOutcome> {
    const { id } = agent
    switch (phase) {
      case 'packages': return await this.packages.bring(agent, record, message => { void this.log.write(id, 'packages', message) })
      // the lifecycle does it: it is about another agent
      case 'replace': return { details: {} }
      case 'data': return { details: { ...await makeData(this.home.folderOf(id)) } }
      case 'wiring': return { details: { files: Object.keys((await this.home.wire(agent, record)).files) } }
      case 'start': return { details: await this.servers.launch(agent, record) }
      case 'probe': return { details: await this.probe(agent, record) }
    }
  }

  /** Asks whether it works. Throws `agent.restart_failed`. */
  async probe (agent: AgentDescriptor, record: AgentRecord): Promise<Readonly<Record<string, unknown>>> {
    const { server, probe } = agent
    if (server !== undefined) return await this.servers.untilUp(agent, `http://127.0.0.1:${server.port}${server.probe}`)
    const program = this.home.programOf(agent, record)
    if (probe === undefined || program === null) return { asked: false }
    const { args, env } = await this.home.wire(agent, record)
    const { programs, signal } = this.#deps
    const command = { kind: 'process', command: program, args: [...args, ...probe.args] } as const
    const run = { purpose: 'agent-probe', env: this.home.envOf(agent.id, program, env), form: command }
    const started = await programs.run(run, { signal })
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
            if (last.length > 2) last.shift()
            if (probe.expect.test(line)) return true
          }
        }
        return false
      })()
      const isUp = await within(signal, UP_MS, bound => Promise.race([
        answered, new Promise<false>(resolve => bound.addEventListener('abort', () => resolve(false), { once: true }))
      ]))
      if (isUp) return { asked: true }
    } finally {
      await started.stop(1)
    }
    signal.throwIfAborted()
    throw agentError('agent.restart_failed', `${agent.name} does not answer as it should: ${last.join(' | ') || 'it wrote nothing'}`)
  }
}
