import { defineRoute, type ActivityLog, type AnyRoute, type RouteCall } from 'svc-gateway/plugin'
import { budgetError, type AgentBudgets, type Budget } from '../../services/agent-budgets/ref.js'
import type { AgentPersonas } from '../../services/agent-personas/ref.js'
import { personaParamsSchema } from './params.js'
import {
  budgetPatchSchema, chargeBodySchema, chargedSchema, checkBodySchema, checkSchema, ledgerQuerySchema, ledgerSchema,
  pricesPatchSchema, pricesSchema, viewSchema
} from './schemas.js'

export interface BudgetServices {
  readonly activity: ActivityLog
  readonly budgets: AgentBudgets
  readonly personas: AgentPersonas
}

const tag = 'Agents'
const unreadableBody = budgetError.kind('budget.invalid_body')
const BUDGET = '/api/agents/:agent/personas/:pid/budget'

export function budgetRoutes ({ activity, budgets, personas }: BudgetServices): AnyRoute[] {
  const audited = <T>(
    { actor, requestId }: Pick<RouteCall, 'actor' | 'requestId'>, action: string, target: string, after: unknown, work: () => Promise<T>
  ): Promise<T> => activity.audited({ category: 'agent', action: `agent.${action}`, target, actor, after, request_id: requestId }, work)
  /** Both have to be there. */
  const purse = ({ agent, pid }: { readonly agent: string, readonly pid: string }): [agent: string, persona: string] => {
    personas.get(agent, pid)
    return [agent, pid]
  }
  return [
    defineRoute({
      method: 'GET',
      url: BUDGET,
      tag,
      summary: 'Budget of an agent in a persona, and its spending',
      schema: { params: personaParamsSchema, response: viewSchema },
      handler: ({ params }) => budgets.get(...purse(params))
    }),
    defineRoute({
      method: 'PUT',
      url: BUDGET,
      tag,
      summary: 'Set or change the budget of an agent',
      description: 'Omitted fields stay. From then on, requests to upstreams that carry the name of the agent are counted while the persona is active.',
      schema: { params: personaParamsSchema, body: budgetPatchSchema, response: viewSchema },
      bodyError: budgetError.kind('budget.invalid'),
      unreadableBody,
      example: { daily_usd: 2, monthly_usd: 20 },
      handler: call => {
        const [agent, persona] = purse(call.params)
        return audited(call, 'budget_set', `${agent}/${persona}`, call.body, () => budgets.set(agent, persona, call.body as Partial<Budget>))
      }
    }),
    defineRoute({
      method: 'DELETE',
      url: BUDGET,
      tag,
      summary: 'Remove a budget; the ledger stays',
      schema: { params: personaParamsSchema },
      handler: call => {
        const [agent, persona] = purse(call.params)
        return audited(call, 'budget_remove', `${agent}/${persona}`, null, () => budgets.remove(agent, persona))
      }
    }),
    defineRoute({
      method: 'POST',
      url: `${BUDGET}/check`,
      tag,
      summary: 'Check whether a budget covers an amount; changes nothing',
      schema: { params: personaParamsSchema, body: checkBodySchema, response: checkSchema },
      bodyError: budgetError.kind('budget.invalid_estimate'),
      unreadableBody,
      example: { estimated_cost_usd: 0.25 },
      handler: ({ params, body }) => budgets.check(...purse(params), body.estimated_cost_usd)
    }),
    defineRoute({
      method: 'POST',
      url: `${BUDGET}/charge`,
      tag,
      summary: 'Charge an amount to a budget if it covers it, in one transaction',
      description: 'For spending outside the gateway. Over a cap the answer is 429 `budget.exceeded` and nothing is recorded, unless `spent` says that the money is already spent.',
      schema: { params: personaParamsSchema, body: chargeBodySchema, response: chargedSchema },
      bodyError: budgetError.kind('budget.invalid_charge'),
      unreadableBody,
      example: { surface: 'search', model: 'web', cost_usd: 0.01 },
      handler: async ({ params, body: { request_id: requestId = null, ...charge } }) => {
        const [agent, persona] = purse(params)
        const row = await budgets.charge(agent, persona, { ...charge, request_id: requestId })
        return { ...await budgets.get(agent, persona), recorded: true as const, row }
      }
    }),
    defineRoute({
      method: 'GET',
      url: `${BUDGET}/ledger`,
      tag,
      summary: 'Reservations, settlements and charges, newest first',
      schema: { params: personaParamsSchema, querystring: ledgerQuerySchema, response: ledgerSchema },
      handler: async ({ params, query: { limit, before } }) => {
        const rows = await budgets.rows(...purse(params), limit, before)
        return { rows, next_before: rows.length < limit ? null : rows.at(-1)!.seq }
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/agents/prices',
      tag,
      summary: 'Prices of upstream models',
      schema: { response: pricesSchema },
      handler: () => ({ prices: budgets.prices() })
    }),
    defineRoute({
      method: 'PATCH',
      url: '/api/agents/prices',
      tag,
      summary: 'Change prices; null removes a row',
      description: 'US dollars per million tokens, and per request. Written to prices.toml, whose comments stay; applies from the next request.',
      schema: { body: pricesPatchSchema, response: pricesSchema },
      bodyError: budgetError.kind('budget.invalid_price'),
      example: { prices: { 'openrouter/*': { input_usd_per_mtok: 3, output_usd_per_mtok: 15 } } },
      handler: call => audited(call, 'prices', 'prices.toml', call.body.prices, async () => ({ prices: await budgets.setPrices(call.body.prices) }))
    })
  ]
}
