import type { Logger, OutgoingCall, OutgoingEnd } from 'svc-gateway/plugin'
import type { BudgetBook } from './budgets.js'
import { budgetError } from './errors.js'
import { actual, estimate } from './estimate.js'
import { toNano } from './money.js'
import { costUsd, type PriceTable } from './prices.js'

export interface TollDeps {
  readonly budgets: Pick<BudgetBook, 'of' | 'reserve' | 'settle'>
  readonly prices: () => PriceTable
  /** Whose request it is; null for one of no agent. */
  readonly agentOf: (headers: OutgoingCall['headers']) => string | null
  readonly activePersona: (agent: string) => string
  /** Tokens of an answer for which the request sets no limit. */
  readonly defaultOutput: number
  readonly log: Logger
}

/** Free everywhere. */
const FREE: ReadonlySet<string> = new Set(['count-tokens', 'input-tokens'])

/**
 * Holds what a request of an agent may cost before it goes to an upstream, and settles what it did cost when its answer has
 * ended, however it ended. Null for a request that no budget counts.
 */
export function toll (deps: TollDeps, call: OutgoingCall): OutgoingEnd | null {
  const agent = deps.agentOf(call.headers)
  if (agent === null || FREE.has(call.surface)) return null
  const persona = deps.activePersona(agent)
  const budget = deps.budgets.of(agent, persona)
  if (budget === undefined) return null
  const { upstream, modelId: model, surface, requestId } = call
  const price = deps.prices().of(upstream, model)
  if (price === null) {
    if (budget.hard_cap) throw priceUnknown(agent, upstream, model)
    deps.log.warn({ agent, upstream, model }, 'a model has no price in prices.toml: it counts as free')
    return null
  }
  const expected = estimate(call, deps.defaultOutput)
  const nano = toNano(costUsd(price, expected))
  const seq = deps.budgets.reserve({ agent, persona, surface, upstream, model, nano, requestId })
  return usage => {
    const tokens = actual(expected, usage)
    deps.budgets.settle(seq, tokens === null ? 0 : toNano(costUsd(price, tokens)), tokens)
  }
}

function priceUnknown (agent: string, upstream: string, model: string): Error {
  return budgetError('budget.price_unknown',
    `agent '${agent}' has a budget, but ${upstream}/${model} has no price; set one: ` +
    `svc agent prices set ${upstream}/${model} --input <usd> --output <usd>`,
    { details: { agent, upstream, model } })
}
