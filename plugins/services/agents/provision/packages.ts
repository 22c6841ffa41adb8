import { access } from 'node:fs/promises'
import type { AgentDescriptor, DaemonService } from 'svc-gateway/plugin'
import type { Environments, PackageOrder } from '../../../api/services/ref.js'
import type { AgentHome } from '../home/agent-home.js'
import { agentError } from '../errors.js'
import { imageVersion, withVersion } from './image-name.js'
import type { AgentRecord } from '../book/record.js'
import type { InstallForm } from '../ref.js'

export interface PackageDeps {
  readonly environments: Environments
  readonly daemons: DaemonService
  /** Aborts when the plugin goes. */
  readonly signal: AbortSignal
}

type Order = PackageOrder | { readonly image: string }

/** Brings what agents are made of: packages in environments, or images. */
export class AgentPackages {
  readonly #deps: PackageDeps
  readonly #home: AgentHome

  constructor (deps: PackageDeps, home: AgentHome) {
    this.#deps = deps
    this.#home = home
  }

  /** Installs it beside what is there. Throws `agent.install_failed`, and what the installer throws. */
  async bring (
    agent: AgentDescriptor, record: AgentRecord, onMessage: (message: string) => void
  ): Promise<{ readonly details: Readonly<Record<string, string>>, readonly change: Partial<AgentRecord> }> {
    const { environments, daemons, signal } = this.#deps
    const { form, wanted_version: wanted, environment: before, version } = record
    const order = orderOf(agent, form, wanted)
    if (order === null) throw agentError('agent.install_failed', `${agent.name} is no longer available as ${form}`)
    const previous = before === null ? null : { environment: before, version }
    const now = (environment: string, is: string): Partial<AgentRecord> => ({ environment, version: is, previous })
    if ('image' in order) {
      await daemons.fetch(order.image, { signal, onMessage })
      return { details: { image: order.image }, change: now(order.image, imageVersion(order.image)) }
    }
    const folder = this.#home.folderOf(agent.id)
    // what an installation left that was cut off
    await environments.sweep(folder, before)
    const environment = await environments.install(order, { folder, signal, onMessage })
    const { package: name, version: is } = order.npm ?? order.python!
    return { details: { package: name, version: is }, change: now(environment, is) }
  }

  /** Takes away what an agent no longer runs from. Images stay: the engine's owner clears those. */
  async sweep (id: string, but: string | null): Promise<void> {
    await this.#deps.environments.sweep(this.#home.folderOf(id), but)
  }

  /** Whether its program is gone, or was never here. Whether an image is here is the engine's affair: it fetches what is not. */
  async isLost (agent: AgentDescriptor, record: Pick<AgentRecord, 'form' | 'environment'>): Promise<boolean> {
    if (record.form === 'container') return record.environment === null
    const program = this.#home.programOf(agent, record)
    return program === null || !await access(program).then(() => true, () => false)
  }
}

/**
 * What the gateway brings of an agent in a form; null where there is no such form.
 * @param version another one than its descriptor's
 */
export function orderOf ({ install = {} }: AgentDescriptor, form: InstallForm, version: string | null): Order | null {
  const { npm, python, container } = install
  if (form === 'container') return container === undefined ? null : { image: withVersion(container.image, version) }
  if (form === 'npm') return npm === undefined ? null : { npm: { ...npm, version: version ?? npm.version } }
  return python === undefined ? null : { python: { ...python, version: version ?? python.version } }
}

/** What an order asks for; null for no order. */
export function versionOf (order: Order | null): string | null {
  if (order === null) return null
  return 'image' in order ? imageVersion(order.image) : (order.npm ?? order.python!).version
}
