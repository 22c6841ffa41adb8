import { within } from 'svc-gateway/plugin'
import type { Core } from '../core.js'

/** A model that is slow or away holds no recall up for longer, unless the configuration says so. */
export const PATIENCE = { embedMs: 3000, rerankMs: 9000 }
/** After it did, recalls go on without it for so long. */
const SPARED_MS = 5000

const spared = new WeakMap<Core, Partial<Record<'embed' | 'rerank', number>>>()

/** Waits for a model up to a bound, and not at all shortly after it failed. Rejects only when the client leaves. */
export async function patiently<T> (
  core: Core, name: 'embed' | 'rerank', ms: number, signal: AbortSignal, work: (bound: AbortSignal) => Promise<T>
): Promise<{ readonly result: T } | { readonly why: string }> {
  let until = spared.get(core)
  if (until === undefined) {
    spared.set(core, until = {})
    // another model may be there
    core.outside.onAbilities(() => { spared.set(core, {}) })
  }
  if (performance.now() < (until[name] ?? 0)) return { why: `the model for ${name} failed a moment ago` }
  return await within(signal, ms, async bound => {
    try {
      return { result: await work(bound) }
    } catch (error) {
      signal.throwIfAborted()
      until[name] = performance.now() + SPARED_MS
      const how = bound.aborted ? `did not answer within ${ms} ms` : `failed: ${(error as Error).message}`
      return { why: `the model for ${name} ${how}` }
    }
  })
}
