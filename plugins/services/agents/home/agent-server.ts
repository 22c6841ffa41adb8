import { pause, type AgentDescriptor, type Clock, type DaemonService } from 'svc-gateway/plugin'
import type { AgentHome } from './agent-home.js'
import { agentError } from '../errors.js'
import type { AgentRecord } from '../book/record.js'

export interface ServerDeps {
  readonly clock: Clock
  readonly daemons: DaemonService
  /** Aborts when the plugin goes. */
  readonly signal: AbortSignal
}

/** A start of a Python program takes up to a minute on a small machine. */
export const UP_MS = 90_000
const LOOK_EVERY_MS = 250
const ASK_MS = 2_000

/** The servers of agents, which run as long as the gateway does. */
export class AgentServers {
  readonly #deps: ServerDeps
  readonly #home: AgentHome

  constructor (deps: ServerDeps, home: AgentHome) {
    this.#deps = deps
    this.#home = home
  }

  /** Ids of the agents whose servers run. */
  async found (): Promise<readonly string[]> {
    const prefix = daemonOf('')
    return (await this.#deps.daemons.found()).flatMap(daemon => daemon.startsWith(prefix) ? [daemon.slice(prefix.length)] : [])
  }

  runs (id: string): boolean {
    return this.#deps.daemons.status(daemonOf(id)).state === 'running'
  }

  async end (id: string): Promise<void> {
    await this.#deps.daemons.end(daemonOf(id))
  }

  /** Wires it, and starts its server where it has one. What runs already from the same wiring goes on. */
  async launch (agent: AgentDescriptor, record: AgentRecord): Promise<Readonly<Record<string, unknown>>> {
    const { daemons, signal } = this.#deps
    const { id, server, install = {} } = agent
    const run = await this.#home.wire(agent, record)
    if (server === undefined) return { server: false }
    const data = this.#home.dataOf(id)
    const { port } = server
    const place = { id: daemonOf(id), host: '127.0.0.1', port }
    const command = this.#home.programOf(agent, record)
    if (command !== null) {
      const form = { kind: 'process', command, args: run.serverArgs, workingDir: data } as const
      await daemons.run({ ...place, env: this.#home.envOf(id, command, run.env), form }, { signal })
      return { server: true, port }
    }
    const { form, environment: image } = record
    // its packages never came, or its plugin describes no image any more
    if (form !== 'container' || image === null || install.container === undefined) {
      throw agentError('agent.restart_failed', `${agent.name} is missing: \`svc agent reprovision ${id} --repair\` restores it`)
    }
    const mounts = [{ source: data, target: install.container.data, readOnly: false }]
    await daemons.run({ ...place, env: run.env, form: { kind: 'container', image, command: run.serverArgs, mounts } }, { signal })
    return { server: true, port }
  }

  /** Waits until it answers. Throws `agent.restart_failed`. */
  async untilUp ({ id, name }: AgentDescriptor, url: string): Promise<Readonly<Record<string, unknown>>> {
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
      if (state !== 'running') throw agentError('agent.restart_failed', problem ?? `${name} is not running`)
      if (clock.monotonic() - began > UP_MS) throw agentError('agent.restart_failed', `${name} is running but does not answer at ${url}`)
      await pause(clock, LOOK_EVERY_MS, signal)
      signal.throwIfAborted()
    }
  }
}

export function daemonOf (id: string): string {
  return `agent-${id}`
}
