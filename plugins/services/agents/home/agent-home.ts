import { join } from 'node:path'
import type { AgentDescriptor, GatewayInfo } from 'svc-gateway/plugin'
import { dataOf, secretOf, writeFiles } from '../book/data.js'
import { runOf, type KnownAgents } from '../known-agents.js'
import type { AgentRecord } from '../book/record.js'
import type { AgentRun } from '../ref.js'

export interface HomeDeps {
  readonly info: Pick<GatewayInfo, 'baseUrl'>
  /** Port of the gateway, for as long as it does not listen. */
  readonly port: () => number
  readonly known: KnownAgents
  /** Folder that has one for each agent. */
  readonly root: () => string
  /** Aborts when the plugin goes. */
  readonly signal: AbortSignal
}

export interface WiredRun extends AgentRun {
  readonly serverArgs: readonly string[]
  /** Where its server speaks JSON-RPC. */
  readonly socket: URL | null
}

/** Where agents are on this machine, and how each is wired there. */
export class AgentHome {
  readonly #deps: HomeDeps

  constructor (deps: HomeDeps) {
    this.#deps = deps
  }

  folderOf (id: string): string {
    return join(this.#deps.root(), id)
  }

  dataOf (id: string): string {
    return dataOf(this.folderOf(id))
  }

  /** Null for a container, and before it is there. */
  programOf ({ program, id }: Pick<AgentDescriptor, 'program' | 'id'>, { form, environment }: Pick<AgentRecord, 'form' | 'environment'>): string | null {
    if (form === 'container' || environment === null) return null
    return join(this.folderOf(id), environment, form === 'npm' ? 'node_modules/.bin' : 'bin', program)
  }

  /** Writes its files. */
  async wire (agent: AgentDescriptor, record: AgentRecord): Promise<WiredRun> {
    const run = await this.#planned(agent, record)
    const isOpen = record.form === 'container' && agent.install?.container?.foreignUser === true
    await writeFiles(this.dataOf(agent.id), run.files, isOpen)
    return run
  }

  /**
   * Where its server speaks JSON-RPC; null for one that does not.
   * @param anew its files are written first
   */
  async socket (agent: AgentDescriptor, record: AgentRecord, anew: boolean): Promise<URL | null> {
    return (await (anew ? this.wire(agent, record) : this.#planned(agent, record))).socket
  }

  /** Of its program. What that writes outside of its folder would stay when it is uninstalled. */
  envOf (id: string, program: string, env: Readonly<Record<string, string>>): Record<string, string> {
    return { PATH: `${join(program, '..')}:${process.env.PATH ?? ''}`, HOME: this.dataOf(id), PYTHONUNBUFFERED: '1', ...env }
  }

  async #planned (agent: AgentDescriptor, { form }: AgentRecord): Promise<WiredRun> {
    const { info, known, port, signal } = this.#deps
    const folder = this.folderOf(agent.id)
    const data = dataOf(folder)
    const gateway = info.baseUrl ?? `http://127.0.0.1:${port()}`
    const seen = form === 'container' ? agent.install?.container?.data ?? data : data
    const world = await known.world(agent, { gateway, folder: seen, secret: await secretOf(folder) }, signal)
    const { args, socket, port: at } = agent.server ?? {}
    return {
      ...runOf(agent, world),
      serverArgs: args?.(world) ?? [],
      socket: socket === undefined ? null : new URL(socket(world), `ws://127.0.0.1:${at}`)
    }
  }
}
