import { messageOf } from 'svc-gateway/plugin'
import type { AgentLifecycle, AgentOffers, Agents } from '../../services/agents/ref.js'
import type { Companions } from '../services/ref.js'

export const extensionKinds = ['app', 'agent'] as const

/** Something to set up beside the gateway, with what a user wants to know first. */
export interface Extension {
  readonly id: string
  readonly kind: typeof extensionKinds[number]
  readonly name: string
  readonly description: string
  /** Disk that it takes; null if unknown. */
  readonly bytes: number | null
  readonly licence: { readonly name: string, readonly note: string | null, readonly url: string | null }
  readonly installed: boolean
}

/** What a first run has unless the request says otherwise. */
const usual: Readonly<Record<string, boolean>> = { openwebui: true, comfyui: true, hermes: true }

export const extensionSkips = ['unknown_extension', 'made_with_its_slot', 'not_asked_for'] as const

export interface ExtensionOutcome {
  readonly ext_id: string
  readonly installed: boolean
  readonly skipped: typeof extensionSkips[number] | null
  readonly error: string | null
  /** Of an installation that goes on. */
  readonly job: string | null
}

export interface ExtensionOrder {
  readonly wanted: Readonly<Record<string, boolean>>
  /** The request names them; those that are on by default are not brought from registries by that alone. */
  readonly isAsked: boolean
}

export interface ExtensionDeps {
  readonly companions: Companions
  readonly agents: Pick<Agents, 'list'>
  readonly agentOffers: AgentOffers
  readonly agentLifecycle: Pick<AgentLifecycle, 'install' | 'list'>
}

/** Those that can really be brought to this machine, or are here. An agent that is a service as well is an agent. */
export async function availableExtensions ({ companions, agentOffers }: ExtensionDeps): Promise<readonly Extension[]> {
  const [services, agents] = await Promise.all([companions.offers(), agentOffers.list()])
  const names = new Set(agents.map(({ agent }) => agent.id))
  const apps = services.filter(({ service, forms, installed }) => (installed || forms.length > 0) && !names.has(service.id))
  return [
    ...apps.map(({ service: { id, name, description, licence }, bytes, installed }) =>
      ({ id, kind: 'app' as const, name, description, bytes, licence, installed })),
    ...agents.map(({ agent: { id, name, description, licence }, bytes, installed }) =>
      ({ id, kind: 'agent' as const, name, description, bytes, licence: { ...licence, note: null }, installed }))
  ]
}

/** What an id means here. */
type Found = { readonly kind: 'app' | 'agent' | 'slot', readonly installed: boolean }

/**
 * Brings the extensions that were asked for, and says what became of each. What runs as a slot is there with it, however that
 * was made; agents come by jobs of their own, which go on. Never rejects.
 */
export async function bringExtensions (deps: ExtensionDeps, { wanted, isAsked }: ExtensionOrder): Promise<ExtensionOutcome[]> {
  const ids = Object.keys(wanted).filter(id => wanted[id] === true)
  const found = ids.length === 0 ? new Map<string, Found>() : await knownExtensions(deps)
  // one agent is at a time: of several, the first one named is installed
  let before: Promise<unknown> = Promise.resolve()
  return await Promise.all(ids.map(id => {
    const skipped = skipOf(found.get(id), isAsked)
    if (skipped !== null) return { ext_id: id, installed: false, skipped, error: null, job: null }
    const { kind, installed } = found.get(id)!
    if (kind !== 'agent') return bringService(deps, id, installed)
    const outcome = before.then(() => bringAgent(deps, id))
    before = outcome
    return outcome
  }))
}

async function knownExtensions ({ companions, agents, agentLifecycle }: ExtensionDeps): Promise<ReadonlyMap<string, Found>> {
  const here = new Set(agentLifecycle.list().filter(({ installed_at: at }) => at !== null).map(({ name }) => name))
  return new Map<string, Found>([
    ...(await companions.offers()).map(({ service: { id, slot }, installed }) =>
      [id, { kind: slot === undefined ? 'app' as const : 'slot' as const, installed }] as const),
    ...agents.list().map(({ id }) => [id, { kind: 'agent' as const, installed: here.has(id) }] as const)
  ])
}

async function bringService ({ companions }: ExtensionDeps, id: string, installed: boolean): Promise<ExtensionOutcome> {
  const outcome = { ext_id: id, skipped: null, job: null }
  try {
    if (!installed) await companions.install(id)
  } catch (error) {
    return { ...outcome, installed: false, error: messageOf(error) }
  }
  const problem = await companions.bringUp(id)
  return { ...outcome, installed: true, error: problem === null ? null : `not_active_yet: ${problem}` }
}

async function bringAgent ({ agentLifecycle }: ExtensionDeps, id: string): Promise<ExtensionOutcome> {
  const outcome = { ext_id: id, skipped: null }
  try {
    const { status, job } = await agentLifecycle.install(id, {})
    const installed = status === 'installed'
    return { ...outcome, installed, error: null, job: installed ? null : job }
  } catch (error) {
    return { ...outcome, installed: false, error: messageOf(error), job: null }
  }
}

/** Null for what is to be brought, or is here already. Pure. */
export function skipOf (found: Found | undefined, isAsked: boolean): ExtensionOutcome['skipped'] {
  if (found === undefined) return 'unknown_extension'
  if (found.kind === 'slot' && found.installed) return 'made_with_its_slot'
  return isAsked || found.installed ? null : 'not_asked_for'
}

/** Those that are on by default. Pure. */
export function defaultExtensions (): Record<string, boolean> {
  return { ...usual }
}

/** Whether an agent was asked for: it needs a model for code. Pure. */
export function wantsAgent (wanted: Readonly<Record<string, boolean>>, agents: ReadonlyArray<{ readonly id: string }>): boolean {
  return agents.some(({ id }) => wanted[id] === true)
}
