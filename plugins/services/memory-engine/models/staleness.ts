import type { Core } from '../core.js'
import type { MentalModel } from './mental-model-table.js'

/** Whether the bank holds something newer, in the scope of a mental model, than what the model was made of. */
export function isStale ({ store }: Core, bank: number, model: MentalModel): boolean {
  const since = model.lastRefreshedAt ?? 0
  const tags = model.tags.map(() => 'AND EXISTS (SELECT 1 FROM memory_tags t WHERE t.bank = m.bank AND t.tag = ? AND t.memory = m.seq)').join(' ')
  return store.get(`SELECT 1 FROM memories m WHERE m.bank = ? AND m.state = 'valid' AND m.updated_at > ? ${tags} LIMIT 1`, [bank, since, ...model.tags]) !== undefined
}
