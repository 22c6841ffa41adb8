import { createServiceRef } from 'svc-gateway/plugin'
import type { Price, PricePatch } from './prices.js'

export { budgetError } from './errors.js'
export { priceKeySchema, pricePatchSchema, priceSchema, type Price, type PricePatch } from './prices.js'

/** US dollars; null is no cap, 0 lets nothing through that costs anything. */
export interface Budget {
  readonly daily_usd: number | null
  readonly monthly_usd: number | null
  readonly lifetime_usd: number | null
  readonly per_call_max_usd: number | null
  /** False: nothing is refused, what goes beyond a cap is only told. */
  readonly hard_cap: boolean
}

export interface Spend {
  readonly today_usd: number
  readonly mtd_usd: number
  readonly lifetime_usd: number
}

export interface BudgetView {
  /** Null: there is none, and nothing is counted. */
  readonly budget: Budget | null
  readonly spend: Spend
  /** Of the windows that have a cap; not below 0. */
  readonly remaining: Readonly<Partial<Record<'daily_usd' | 'monthly_usd' | 'lifetime_usd', number>>>
}

export interface BudgetCheck {
  readonly allowed: boolean
  /** `per_call`, `daily`, `monthly` or `lifetime`: the first cap that does not hold it. Null where all do. */
  readonly reason: string | null
  /** The least that is left in any window; null without a cap. */
  readonly remaining_usd: number | null
  readonly hard_cap: boolean
}

export interface NewCharge {
  readonly surface: string
  readonly model: string
  readonly cost_usd: number
  readonly request_id: string | null
  /** It has been spent already: it is written down whatever the caps say. */
  readonly spent: boolean
}

/** A row of the ledger, which is only ever added to. */
export interface LedgerRow {
  readonly seq: number
  /** ISO 8601 UTC. */
  readonly ts: string
  /** `reserve`: the estimate of a request that runs. `settle`: what it came to less that estimate. `charge`: as it was given. */
  readonly kind: string
  /** The `reserve` that a `settle` belongs to. */
  readonly settles: number | null
  readonly persona_id: string
  readonly surface: string
  readonly upstream: string | null
  readonly model: string
  readonly cost_usd: number
  readonly request_id: string | null
  readonly input_tokens: number | null
  readonly output_tokens: number | null
}

/** What agents may spend at upstreams, each in its own persona. Names are not checked here. */
export interface AgentBudgets {
  get (agent: string, persona: string): Promise<BudgetView>
  /** Keys that are left out stay as they are. Throws `budget.invalid`, `budget.ledger_failed`. */
  set (agent: string, persona: string, patch: Partial<Budget>): Promise<BudgetView>
  /** Ends the budget; the ledger stays. */
  remove (agent: string, persona: string): Promise<void>
  check (agent: string, persona: string, estimateUsd: number): Promise<BudgetCheck>
  /** Checks and writes down in one transaction. Throws `budget.exceeded`, `budget.ledger_failed`. */
  charge (agent: string, persona: string, charge: NewCharge): Promise<LedgerRow>
  /** Newest first. @param before only rows with a lower `seq` */
  rows (agent: string, persona: string, limit: number, before?: number): Promise<readonly LedgerRow[]>
  prices (): Readonly<Record<string, Price>>
  /** Fields that are left out stay; null removes a row. Throws `validation.invalid`, `config.write_failed`. */
  setPrices (patch: Readonly<Record<string, PricePatch | null>>): Promise<Readonly<Record<string, Price>>>
}

export const agentBudgetsRef = createServiceRef<AgentBudgets>('agent-budgets.budgets')
