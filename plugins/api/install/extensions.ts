/** What can be set up beside the gateway. `brought` is what this release really sets up. */
export const extensions = [
  { id: 'openwebui', kind: 'app', default: true, brought: false },
  { id: 'comfyui', kind: 'app', default: true, brought: false },
  { id: 'hermes', kind: 'agent', default: true, brought: false },
  { id: 'pi', kind: 'agent', default: false, brought: false }
] as const satisfies ReadonlyArray<{ id: string, kind: string, default: boolean, brought: boolean }>

export const extensionSkips = ['unknown_extension', 'not_in_this_release', 'made_with_its_slot'] as const

export interface ExtensionOutcome {
  readonly ext_id: string
  readonly installed: boolean
  readonly skipped: typeof extensionSkips[number] | null
  readonly error: string | null
}

/** Ids of those that this release sets up. Pure. */
export function availableExtensions (): string[] {
  return extensions.filter(({ brought }) => brought).map(({ id }) => id)
}

/**
 * What becomes of the extensions that were asked for. This release brings none of them: it says so, and nothing is made to
 * look installed. The image engine needs no installation, it is a slot. Pure.
 */
export function extensionOutcomes (wanted: Readonly<Record<string, boolean>>): ExtensionOutcome[] {
  return Object.keys(wanted).filter(id => wanted[id] === true).map(id => {
    const known = extensions.some(extension => extension.id === id)
    const skipped = !known ? 'unknown_extension' : id === 'comfyui' ? 'made_with_its_slot' : 'not_in_this_release'
    return { ext_id: id, installed: false, skipped, error: null }
  })
}

/** Those that are on by default. Pure. */
export function defaultExtensions (): Record<string, boolean> {
  return Object.fromEntries(extensions.map(extension => [extension.id, extension.default]))
}

/** Whether an agent was asked for: it needs a model for code. Pure. */
export function wantsAgent (wanted: Readonly<Record<string, boolean>>): boolean {
  return extensions.some(({ id, kind }) => kind === 'agent' && wanted[id] === true)
}
