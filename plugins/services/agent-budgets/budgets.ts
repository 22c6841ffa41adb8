import { existsSync } from 'node:fs'
import type { Clock, EventBus, Logger } from 'svc-gateway/plugin'
import { budgetError } from './errors.js'
import { Ledger, type Entry, type NewEntry, type Purse, type Totals } from './ledger.js'
import { toNano, toUsd } from './money.js'
import type { AgentBudgets, Budget, BudgetCheck, BudgetView, LedgerRow, NewCharge } from './ref.js'
import { windowEnd, windowKey, windows, type Window } from './windows.js'

export interface BudgetBookDeps {
  readonly clock: Clock
  readonly events: EventBus
  readonly log: Logger
  readonly path: () => string
  /** The first budget came, or the last one went. */
  readonly watching: (isOn: boolean) => void
}

/** A ledger that cannot be read is tried again no sooner: where it is locked, each try may take seconds. */
const RETRY_MS = 60_000
const NONE: Budget = { daily_usd: null, monthly_usd: null, lifetime_usd: null, per_call_max_usd: null, hard_cap: true }
const NO_TOTALS: Totals = { daily: 0, monthly: 0, lifetime: 0 }
const CAPS = { daily: 'daily_usd', monthly: 'monthly_usd', lifetime: 'lifetime_usd' } as const

/** Budgets and what was spent. The ledger is opened when there is one, or with the first budget. */
export class BudgetBook implements Omit<AgentBudgets, 'prices' | 'setPrices'> {
  readonly #deps: BudgetBookDeps
  #ledger: Promise<Ledger> | null = null
  /** Open; null before, and where it cannot be read. */
  #open: Ledger | null = null
  #budgets = new Map<string, Budget>()
  /** Monotonic; when it may be tried again. */
  #retryAt = 0
  /** Windows whose cap was told of. */
  readonly #told = new Set<string>()

  constructor (deps: BudgetBookDeps) {
    this.#deps = deps
  }

  /** A ledger that cannot be read refuses what it may have a budget for, until it can. */
  async start (): Promise<void> {
    if (!existsSync(this.#deps.path())) return
    await this.#opened().catch((error: unknown) => {
      this.#deps.log.error({ err: error }, 'the ledger of budgets cannot be read: requests of agents to upstreams are refused')
      this.#retryAt = this.#deps.clock.monotonic() + RETRY_MS
      this.#deps.watching(true)
    })
  }

  async close (): Promise<void> {
    const ledger = await this.#ledger?.catch(() => null)
    this.#open = null
    ledger?.close()
  }

  /** Undefined where there is none. Quick. Throws `budget.ledger_failed` while the ledger cannot be read, and tries it again. */
  of (agent: string, persona: string): Budget | undefined {
    if (this.#open === null) {
      this.#retry()
      throw budgetError('budget.ledger_failed', 'the ledger of budgets cannot be read; the log of the gateway says why')
    }
    return this.#budgets.get(keyOf({ agent, persona }))
  }

  async get (agent: string, persona: string): Promise<BudgetView> {
    return this.#view({ agent, persona }, await this.#existing())
  }

  async set (agent: string, persona: string, patch: Partial<Budget>): Promise<BudgetView> {
    const ledger = await this.#opened()
    const purse = { agent, persona }
    const limits = { ...NONE, ...this.#budgets.get(keyOf(purse)), ...defined(patch) }
    ledger.setBudget(purse, limits)
    this.#budgets.set(keyOf(purse), limits)
    this.#told.clear()
    this.#deps.watching(true)
    return this.#view(purse, ledger)
  }

  async remove (agent: string, persona: string): Promise<void> {
    const ledger = await this.#existing()
    ledger?.setBudget({ agent, persona }, null)
    this.#budgets.delete(keyOf({ agent, persona }))
    if (this.#budgets.size === 0) this.#deps.watching(false)
  }

  async check (agent: string, persona: string, estimateUsd: number): Promise<BudgetCheck> {
    const purse = { agent, persona }
    const totals = (await this.#existing())?.totals(purse, this.#deps.clock.now()) ?? NO_TOTALS
    const limits = this.#budgets.get(keyOf(purse)) ?? NONE
    const reason = breach(limits, totals, toNano(estimateUsd))
    const left = Object.values(remaining(limits, totals))
    return {
      allowed: reason === null || !limits.hard_cap, reason, remaining_usd: left.length === 0 ? null : Math.min(...left),
      hard_cap: limits.hard_cap
    }
  }

  async charge (agent: string, persona: string, charge: NewCharge): Promise<LedgerRow> {
    const { surface, model, cost_usd: cost, request_id: requestId, spent } = charge
    const ledger = await this.#opened()
    const entry = { agent, persona, kind: 'charge' as const, surface, upstream: null, model, nano: toNano(cost), requestId }
    return rowOf(ledger.entry(this.#add(ledger, entry, spent)))
  }

  async rows (agent: string, persona: string, limit: number, before?: number): Promise<readonly LedgerRow[]> {
    return (await this.#existing())?.entries({ agent, persona }, limit, before).map(rowOf) ?? []
  }

  /** Holds what a request may cost. Throws `budget.exceeded`, `budget.ledger_failed`. Returns the number to settle. */
  reserve (entry: Omit<NewEntry, 'kind'>): number {
    return this.#add(this.#open!, { ...entry, kind: 'reserve' }, false)
  }

  /** Never throws: what cannot be written stays at its estimate. */
  settle (seq: number, nano: number, tokens: { readonly input: number, readonly output: number } | null): void {
    try {
      if (this.#open === null) throw new Error('the ledger is closed')
      this.#open.settle(seq, nano, tokens)
    } catch (error) {
      this.#deps.log.error({ err: error, entry: seq }, 'the cost of a request could not be recorded: its estimate stays')
    }
  }

  #add (ledger: Ledger, entry: NewEntry, spent: boolean): number {
    const now = this.#deps.clock.now()
    const limits = this.#budgets.get(keyOf(entry)) ?? NONE
    return ledger.add(entry, now, totals => {
      const reason = breach(limits, totals, entry.nano)
      if (reason === null) return
      this.#tell(entry, reason, now)
      if (limits.hard_cap && !spent) throw exceeded(entry, limits, totals, reason, now)
    })
  }

  /** Once for each window. */
  #tell ({ agent, persona }: Purse, reason: Reason, now: number): void {
    const window = reason === 'per_call' ? 'daily' : reason
    const key = `${agent}/${persona} ${reason} ${windowKey(window, now)}`
    if (this.#told.has(key)) return
    this.#told.add(key)
    this.#deps.events.emit({
      type: 'agent.budget_exceeded',
      severity: 'warn',
      source: `agent:${agent}`,
      message: `agent '${agent}' has reached the ${words[reason]} of its budget`,
      data: { agent, persona, reason }
    })
  }

  #view (purse: Purse, ledger: Ledger | null): BudgetView {
    const totals = ledger?.totals(purse, this.#deps.clock.now()) ?? NO_TOTALS
    const budget = this.#budgets.get(keyOf(purse)) ?? null
    return {
      budget,
      spend: { today_usd: toUsd(totals.daily), mtd_usd: toUsd(totals.monthly), lifetime_usd: toUsd(totals.lifetime) },
      remaining: remaining(budget ?? NONE, totals)
    }
  }

  /** Null where none was ever made. */
  async #existing (): Promise<Ledger | null> {
    return this.#ledger !== null || existsSync(this.#deps.path()) ? await this.#opened() : null
  }

  /** In the background: a request waits for nothing. A ledger that is gone is not made anew, which would end all budgets. */
  #retry (): void {
    const now = this.#deps.clock.monotonic()
    if (now < this.#retryAt) return
    this.#retryAt = now + RETRY_MS
    this.#existing().catch((error: unknown) => this.#deps.log.error({ err: error }, 'the ledger of budgets still cannot be read'))
  }

  #opened (): Promise<Ledger> {
    this.#ledger ??= Ledger.open(this.#deps.path()).then(ledger => {
      try {
        this.#budgets = new Map(ledger.budgets().map(row => [keyOf(row), row.limits]))
      } catch (error) {
        ledger.close()
        throw error
      }
      this.#open = ledger
      this.#deps.watching(this.#budgets.size > 0)
      return ledger
    }).catch((error: unknown) => {
      this.#ledger = null
      throw error
    })
    return this.#ledger
  }
}

type Reason = Window | 'per_call'
const words: Readonly<Record<Reason, string>> = {
  per_call: 'cap per request', daily: 'daily cap', monthly: 'monthly cap', lifetime: 'lifetime cap'
}

/** The first cap that does not hold the amount. Pure. */
function breach (limits: Budget, totals: Totals, nano: number): Reason | null {
  const over = (cap: number | null, before: number): boolean => cap !== null && nano > 0 && before + nano > toNano(cap)
  if (over(limits.per_call_max_usd, 0)) return 'per_call'
  return windows.find(window => over(limits[CAPS[window]], totals[window])) ?? null
}

function remaining (limits: Budget, totals: Totals): BudgetView['remaining'] {
  return Object.fromEntries(windows.flatMap(window => {
    const cap = limits[CAPS[window]]
    return cap === null ? [] : [[CAPS[window], toUsd(Math.max(0, toNano(cap) - totals[window]))]]
  }))
}

function exceeded ({ agent, persona, nano }: NewEntry, limits: Budget, totals: Totals, reason: Reason, now: number): Error {
  const cap = reason === 'per_call' ? limits.per_call_max_usd : limits[CAPS[reason]]
  const before = reason === 'per_call' ? 0 : totals[reason]
  const resets = reason === 'per_call' ? null : windowEnd(reason, now)
  const anew = resets === null ? '' : `; it resets at ${resets}`
  const spent = reason === 'per_call' ? '' : `$${toUsd(before)} of it is spent, and `
  return budgetError('budget.exceeded',
    `agent '${agent}' may not spend this: the ${words[reason]} is $${cap ?? 0}; ` +
    `${spent}this request may cost $${toUsd(nano)}${anew}`,
    {
      details: {
        agent, persona, reason, cap_usd: cap, spent_usd: toUsd(before), estimated_usd: toUsd(nano), resets_at: resets
      }
    })
}

function rowOf ({ seq, at, kind, settles, persona, surface, upstream, model, nano, ...rest }: Entry): LedgerRow {
  return {
    seq, ts: new Date(at).toISOString(), kind, settles, persona_id: persona, surface, upstream, model, cost_usd: toUsd(nano),
    request_id: rest.request_id, input_tokens: rest.input_tokens, output_tokens: rest.output_tokens
  }
}

function keyOf ({ agent, persona }: Purse): string {
  return `${agent}/${persona}`
}

function defined<T extends object> (patch: T): Partial<T> {
  return Object.fromEntries(Object.entries(patch).filter(([, value]) => value !== undefined)) as Partial<T>
}
