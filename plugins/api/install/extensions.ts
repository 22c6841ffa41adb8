import { messageOf } from 'svc-gateway/plugin'
import type { Companions, ServiceOffer } from '../services/ref.js'

/** What can be set up beside the gateway; `default` is what a first run would have if nobody said anything else. */
export const extensions = [
  { id: 'openwebui', kind: 'app', default: true },
  { id: 'comfyui', kind: 'app', default: true },
  { id: 'hermes', kind: 'agent', default: true },
  { id: 'pi', kind: 'agent', default: false }
] as const satisfies ReadonlyArray<{ id: string, kind: string, default: boolean }>

export const extensionSkips = ['unknown_extension', 'not_in_this_release', 'made_with_its_slot', 'not_asked_for'] as const

export interface ExtensionOutcome {
  readonly ext_id: string
  readonly installed: boolean
  readonly skipped: typeof extensionSkips[number] | null
  readonly error: string | null
}

export interface ExtensionOrder {
  readonly wanted: Readonly<Record<string, boolean>>
  /** Somebody asked for them; those that are on by default are not brought from registries by that alone. */
  readonly isAsked: boolean
}

/** Those that can really be brought to this machine. */
export async function availableExtensions (companions: Companions): Promise<readonly ServiceOffer[]> {
  const offers = await companions.offers()
  return offers.filter(({ service, forms }) => forms.length > 0 && extensions.some(({ id }) => id === service.id))
}

/**
 * Brings the extensions that were asked for, and says what became of each. The image engine needs no installation, it is a
 * slot. Never rejects.
 */
export async function bringExtensions (companions: Companions, { wanted, isAsked }: ExtensionOrder): Promise<ExtensionOutcome[]> {
  const ids = Object.keys(wanted).filter(id => wanted[id] === true)
  const offers = ids.length === 0 ? [] : await companions.offers()
  return await Promise.all(ids.map(async id => {
    const offer = offers.find(({ service }) => service.id === id)
    const skipped = skipOf(id, offer, isAsked)
    if (skipped !== null) return { ext_id: id, installed: false, skipped, error: null }
    try {
      if (offer?.installed !== true) await companions.install(id)
    } catch (error) {
      return { ext_id: id, installed: false, skipped: null, error: messageOf(error) }
    }
    const problem = await companions.bringUp(id)
    return { ext_id: id, installed: true, skipped: null, error: problem === null ? null : `not_active_yet: ${problem}` }
  }))
}

/** Null for what is to be brought. Pure. */
export function skipOf (id: string, offer: ServiceOffer | undefined, isAsked: boolean): ExtensionOutcome['skipped'] {
  if (!extensions.some(extension => extension.id === id)) return 'unknown_extension'
  if (offer?.service.slot !== undefined) return 'made_with_its_slot'
  if ((offer?.service.python ?? offer?.service.container) === undefined) return 'not_in_this_release'
  return isAsked || offer?.installed === true ? null : 'not_asked_for'
}

/** Those that are on by default. Pure. */
export function defaultExtensions (): Record<string, boolean> {
  return Object.fromEntries(extensions.map(extension => [extension.id, extension.default]))
}

/** Whether an agent was asked for: it needs a model for code. Pure. */
export function wantsAgent (wanted: Readonly<Record<string, boolean>>): boolean {
  return extensions.some(({ id, kind }) => kind === 'agent' && wanted[id] === true)
}
