import type { Core } from '../core.js'
import type { Cell } from '../store/store.js'
import type { MentalModel } from './mental-model-table.js'

/** Of more, those with the model's first tag are looked at instead. */
const MOST_NEWER = 1000

type Scope = Pick<MentalModel, 'tags' | 'lastRefreshedAt'>

/** Whether the bank holds something newer, in the scope of a mental model, than what the model was made of. */
export function isStale (core: Core, bank: number, model: Scope): boolean {
  return stalenessOf(core, bank)(model)
}

/** The same for many of a bank. What is told for a model without tags is kept for the others without tags. */
export function stalenessOf ({ store }: Core, bank: number): (model: Scope) => boolean {
  let [newerThan, noneAfter] = [-Infinity, Infinity]
  const ofBank = (since: number): boolean => {
    if (since <= newerThan) return true
    if (since >= noneAfter) return false
    const found = store.get(`SELECT 1 FROM memories m WHERE m.bank = ? AND m.state = 'valid' AND m.updated_at > ? LIMIT 1`, [bank, since]) !== undefined
    if (found) newerThan = since
    else noneAfter = since
    return found
  }
  return ({ tags, lastRefreshedAt }) => {
    const since = lastRefreshedAt ?? 0
    const [first, ...others] = tags
    if (first === undefined) return ofBank(since)
    const tagged = (memory: string, named: readonly string[]): string =>
      ['true', ...named.map(() => `EXISTS (SELECT 1 FROM memory_tags o WHERE o.bank = ? AND o.tag = ? AND o.memory = ${memory})`)].join(' AND ')
    const valuesOf = (named: readonly string[]): Cell[] => named.flatMap(tag => [bank, tag])
    // what is newer than the model, if that is little
    const { newer, isIn } = store.get<{ newer: number, isIn: number | null }>(
      `SELECT count(*) AS newer, max(${tagged('n.seq', tags)}) AS isIn FROM (SELECT seq FROM memories
         WHERE bank = ? AND state = 'valid' AND updated_at > ? ORDER BY updated_at DESC LIMIT ${MOST_NEWER}) n`,
      [...valuesOf(tags), bank, since])!
    return isIn === 1 || (newer === MOST_NEWER && store.get(
      `SELECT 1 FROM memory_tags t CROSS JOIN memories m ON m.seq = t.memory
       WHERE t.bank = ? AND t.tag = ? AND m.state = 'valid' AND m.updated_at > ? AND ${tagged('m.seq', others)} LIMIT 1`,
      [bank, first, since, ...valuesOf(others)]) !== undefined)
  }
}
