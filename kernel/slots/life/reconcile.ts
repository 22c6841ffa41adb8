import type { EngineInspection } from '../../contract/provider/engine-runtime.js'
import { LABEL_CONFIG, LABEL_GENERATION, LABEL_SLOT } from '../../contract/provider/engine-runtime.js'

export interface ReconcilePlan {
  readonly adopt: ReadonlyArray<{ readonly slot: string, readonly engine: EngineInspection }>
  /** They run, and what they should be cannot be told. */
  readonly hold: ReconcilePlan['adopt']
  readonly remove: ReadonlyArray<{ readonly engine: EngineInspection, readonly reason: string }>
}

/**
 * What to do with engines of this home that an earlier gateway left. Pure. `wanted` gives the
 * configuration hash each slot would be started with now, or null for a slot that must not run. Of several
 * engines of one slot only the youngest may live.
 * @param isUnread whether a file that says what a slot should run could not be read
 */
export function reconcileEngines (
  found: readonly EngineInspection[], wanted: ReadonlyMap<string, string | null>,
  isUnread: (slot: string) => boolean = () => false
): ReconcilePlan {
  const adopt = new Map<string, EngineInspection>()
  const hold = new Map<string, EngineInspection>()
  const remove: Array<{ engine: EngineInspection, reason: string }> = []
  for (const engine of byAge(found).reverse()) {
    const slot = engine.labels[LABEL_SLOT] ?? ''
    const reason = unfit(engine, wanted.get(slot), adopt.has(slot))
    const runsUnread = reason !== null && slot !== '' && engine.state === 'running' && isUnread(slot)
    if (runsUnread && hold.has(slot)) remove.push({ engine, reason: YOUNGER })
    else if (runsUnread) hold.set(slot, engine)
    else if (reason === null) adopt.set(slot, engine)
    else remove.push({ engine, reason })
  }
  return { adopt: listed(adopt), hold: listed(hold), remove }
}

const YOUNGER = 'a newer engine of its slot exists'

function listed (engines: ReadonlyMap<string, EngineInspection>): ReconcilePlan['adopt'] {
  return [...engines].map(([slot, engine]) => ({ slot, engine }))
}

/**
 * Why an engine may not stay; null when it may. Pure.
 * @param hash as `wanted` above; undefined for a slot that is not there
 * @param taken another engine of the slot stays
 */
export function unfit (engine: EngineInspection, hash: string | null | undefined, taken: boolean): string | null {
  if (hash === undefined) return 'its slot no longer exists'
  if (hash === null) return 'its slot is disabled, cannot be started or may not use its GPU'
  if (engine.state !== 'running') return 'it is not running'
  if (engine.labels[LABEL_CONFIG] !== hash) return 'the configuration of its slot has changed'
  if (taken) return YOUNGER
  return null
}

/** The youngest is the last. Pure. */
export function byAge (found: readonly EngineInspection[]): EngineInspection[] {
  return [...found].sort((a, b) => generationOf(a) - generationOf(b))
}

/** Of the launch that an engine is of; 0 for one that does not say. Pure. */
export function generationOf (engine: EngineInspection): number {
  const value = Number(engine.labels[LABEL_GENERATION])
  return Number.isSafeInteger(value) && value >= 0 ? value : 0
}
