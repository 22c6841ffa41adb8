import type { Core } from '../core.js'
import type { MentalModel } from './mental-model-table.js'

type Scope = Pick<MentalModel, 'tags' | 'lastRefreshedAt'>

/** Whether the bank holds something newer, in the scope of a mental model, than what the model was made of. */
export function isStale (core: Core, bank: number, model: Scope): boolean {
  return stalenessOf(core, bank)(model)
}

/**
 * The same for many of a bank. For a model without tags all of its memories may be looked at: what that tells is kept for the
 * others without tags.
 */
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
  return ({ tags: [first, ...others], lastRefreshedAt }) => {
    const since = lastRefreshedAt ?? 0
    if (first === undefined) return ofBank(since)
    const also = others.map(() => 'AND EXISTS (SELECT 1 FROM memory_tags o WHERE o.bank = t.bank AND o.tag = ? AND o.memory = m.seq)').join(' ')
    return store.get(
      `SELECT 1 FROM memory_tags t CROSS JOIN memories m ON m.seq = t.memory
       WHERE t.bank = ? AND t.tag = ? AND m.state = 'valid' AND m.updated_at > ? ${also} LIMIT 1`, [bank, first, since, ...others]) !== undefined
  }
}
