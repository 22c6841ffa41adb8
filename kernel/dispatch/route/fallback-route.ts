import type { Upstream } from '../../contract/index.js'
import type { Resolution, Route } from './resolve.js'

export interface FallbackLook {
  readonly resolve: (model: string) => Resolution
  /** An upstream that is switched on. */
  readonly upstream: (name: string) => Upstream | undefined
}

/**
 * Where an entry of a fallback chain leads: a slot or model as a request would name it, an upstream that is asked for the same
 * model, or `<upstream>/<model>` also while the list of that upstream is not known. Null when it leads nowhere. Pure.
 * @param modelId what the upstream that failed was asked for
 */
export function fallbackRoute (entry: string, modelId: string, look: FallbackLook): Route | null {
  const resolution = look.resolve(entry)
  if (resolution.kind === 'slot') return resolution
  if (look.upstream(entry) !== undefined) return { kind: 'upstream', upstream: entry, modelId }
  if (resolution.kind === 'upstream') return resolution
  const slash = entry.indexOf('/')
  const name = entry.slice(0, slash)
  return slash > 0 && slash + 1 < entry.length && look.upstream(name) !== undefined
    ? { kind: 'upstream', upstream: name, modelId: entry.slice(slash + 1) }
    : null
}
