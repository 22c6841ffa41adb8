import { randomUUID } from 'node:crypto'
import { configOf } from '../banks/config.js'
import type { Core } from '../core.js'
import { PermanentFailure, type Operation } from '../operations/operation.js'
import type { Run, Work } from '../operations/operation-queue.js'
import { findBank, type BankRow } from '../store/bank-table.js'
import type { MemoryRow } from '../store/memory-table.js'
import { wireTime } from '../wire/times.js'
import { ask, tokensToday } from './ask.js'
import { consolidationMessages, consolidationPlan, type ShownObservation } from './consolidation.js'
import { tokensOf } from '../recall/tokens.js'
import { addUsage, noUsage } from './model.js'
import { openFacts } from './open-facts.js'
import { readSources } from './sources.js'
import { applyChanges, CHANGED, type Changes, type PlannedObservation } from './observation-changes.js'
import { afterConsolidation } from './consolidation-schedule.js'

/** What models may take for the consolidation of one bank in one day, UTC, unless the settings say otherwise. */
const TOKENS_A_DAY = 500_000
const ANSWER_TOKENS = 2048

/** Says nothing about the facts, which stay open for another day. */
class BudgetSpent extends PermanentFailure {}

/** Observations that a model is shown beside the new facts of their scope. */
const SHOWN_OBSERVATIONS = 30
const SHOWN_TOKENS = 4096

/**
 * Merges facts into observations: all that one run comes to is one transaction, which can be undone. An answer that is not sound
 * changes nothing.
 */
export function consolidationWork (core: Core): Work {
  return async (operation, run) => {
    const bank = findBank(core.store, operation.bankId)
    if (bank === undefined) throw new PermanentFailure(`Bank '${operation.bankId}' not found`)
    const { scopes = null } = (operation.payload ?? {}) as { readonly scopes?: ReadonlyArray<readonly string[]> | null }
    const facts = factsOf(core, bank, scopes)
    const planning = new Planning(core, bank, operation, run)
    const size = Number(configOf(bank).consolidation_llm_batch_size)
    for (const batch of batchesOf(facts, size)) {
      run.progress('consolidating', planning.count, facts.length)
      try {
        if (!await planning.take(batch)) break
      } catch (error) {
        // they stay out until a client recovers them
        if (!(error instanceof PermanentFailure) || error instanceof BudgetSpent) throw error
        throw new PermanentFailure(error.message, error.details, () => markFailed(core, batch))
      }
    }
    const changes = planning.end()
    run.commit(() => {
      const counts = applyChanges(core, bank, operation.id, changes)
      core.store.run('UPDATE banks SET last_consolidated_at = ? WHERE seq = ?', [core.now(), bank.seq])
      afterConsolidation(core, bank, {
        changed: changes.observations.length > 0 || changes.deletes.length > 0,
        mayGoOn: !planning.isSpent && changes.facts.length > 0
      })
      return {
        ...counts, memories_processed: changes.facts.length, budget_exhausted: planning.isSpent,
        tokens: planning.usage.inputTokens + planning.usage.outputTokens
      }
    })
  }
}

function factsOf ({ store }: Core, bank: BankRow, scopes: ReadonlyArray<readonly string[]> | null): readonly MemoryRow[] {
  const rows = openFacts(store, bank, Math.max(1, Number(configOf(bank).consolidation_max_memories_per_round)))
  const wanted = scopes?.map(tags => scopeKey(tags))
  return wanted === undefined ? rows : rows.filter(({ tags }) => wanted.includes(scopeKey(JSON.parse(tags) as string[])))
}

/** Observations are made of facts that the same readers may see. Pure. */
export function scopeKey (tags: readonly string[]): string {
  return JSON.stringify([...new Set(tags)].sort())
}

function batchesOf (facts: readonly MemoryRow[], size: number): ReadonlyArray<readonly MemoryRow[]> {
  const scopes = new Map<string, MemoryRow[]>()
  for (const fact of facts) {
    const key = scopeKey(JSON.parse(fact.tags) as string[])
    scopes.set(key, [...scopes.get(key) ?? [], fact])
  }
  return [...scopes.values()].flatMap(
    rows => Array.from({ length: Math.ceil(rows.length / size) }, (_, n) => rows.slice(n * size, (n + 1) * size))
  )
}

function markFailed ({ store, now }: Core, batch: readonly MemoryRow[]): void {
  for (const { seq } of batch) store.run('UPDATE memories SET consolidation_failed_at = ? WHERE seq = ?', [now(), seq])
}

/** What becomes of the observations, batch by batch: later batches see what earlier ones came to. */
class Planning {
  readonly #core: Core
  readonly #bank: BankRow
  readonly #operation: Operation
  readonly #run: Run
  readonly #facts: MemoryRow[] = []
  readonly #observations = new Map<string, PlannedObservation>()
  readonly #deletes = new Map<string, MemoryRow>()
  usage = noUsage
  /** The bank's budget of the day is used up. */
  isSpent = false

  constructor (core: Core, bank: BankRow, operation: Operation, run: Run) {
    this.#core = core
    this.#bank = bank
    this.#operation = operation
    this.#run = run
  }

  get count (): number { return this.#facts.length }

  /** False once the budget does not reach any further. */
  async take (batch: readonly MemoryRow[]): Promise<boolean> {
    const tags = JSON.parse(batch[0]!.tags) as string[]
    const facts = batch.map(row => ({ id: row.id, text: row.text, at: wireTime(row.mentioned_at) }))
    const shown = await this.#shown(tags, batch)
    const messages = consolidationMessages(facts, shown, configOf(this.#bank).observations_mission as string | null)
    const cost = messages.reduce((sum, { content }) => sum + tokensOf(content), ANSWER_TOKENS)
    const budget = this.#core.outside.abilities.consolidationTokens ?? TOKENS_A_DAY
    const left = budget - tokensToday(this.#core, this.#bank.seq, 'consolidation')
    if (cost > left && this.#facts.length === 0) {
      throw new BudgetSpent(`the consolidation of this bank has used its ${budget} tokens for today; raise [memory] consolidation_tokens_per_day, or request it again tomorrow (UTC)`)
    }
    if (cost > left) {
      this.isSpent = true
      return false
    }
    const answer = await ask(this.#core, { bank: this.#bank.seq, operation: 'consolidation', scope: 'consolidation', traceId: this.#operation.id },
      { messages, maxTokens: ANSWER_TOKENS, json: true }, this.#run.signal)
    this.usage = addUsage(this.usage, answer)
    const plan = consolidationPlan(answer.text, facts, shown)
    const byId = new Map(batch.map(row => [row.id, row]))
    const rowsOf = (ids: readonly string[]): MemoryRow[] => ids.map(id => byId.get(id)!)
    for (const { text, sources } of plan.creates) {
      const id = randomUUID()
      this.#observations.set(id, { id, before: null, text, tags, sources: rowsOf(sources) })
    }
    for (const { id, text, sources } of plan.updates) {
      const known = this.#observations.get(id) ?? { id, before: this.#stored(id), text, tags, sources: [] }
      this.#observations.set(id, { ...known, text, sources: [...known.sources, ...rowsOf(sources)] })
    }
    for (const id of plan.deletes) {
      const planned = this.#observations.get(id)
      this.#observations.delete(id)
      const stored = planned === undefined ? this.#stored(id) : planned.before
      if (stored !== null) this.#deletes.set(id, stored)
    }
    this.#facts.push(...batch)
    return true
  }

  end (): Changes {
    return { facts: this.#facts, observations: [...this.#observations.values()], deletes: [...this.#deletes.values()] }
  }

  /** Observations of the scope that have to do with the facts. */
  async #shown (tags: readonly string[], batch: readonly MemoryRow[]): Promise<readonly ShownObservation[]> {
    const key = scopeKey(tags)
    const planned = [...this.#observations.values()].filter(each => scopeKey(each.tags) === key)
    const related = await readSources(this.#core, this.#bank, {
      query: batch.map(({ text }) => text).join('\n'), types: ['observation'], tags, tagsMatch: 'exact', tagGroups: null, maxTokens: SHOWN_TOKENS
    }, this.#run.signal)
    const stored = related.filter(({ id }) => !this.#observations.has(id) && !this.#deletes.has(id))
    return [...planned, ...stored].slice(0, SHOWN_OBSERVATIONS).map(({ id, text }) => ({ id, text }))
  }

  #stored (id: string): MemoryRow {
    const row = this.#core.store.get<MemoryRow>('SELECT * FROM memories WHERE bank = ? AND id = ?', [this.#bank.seq, id])
    // deleted while the model answered
    if (row === undefined) throw new Error(CHANGED)
    return row
  }
}
