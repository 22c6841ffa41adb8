import { defineErrors } from 'svc-gateway/plugin'

export const budgetError = defineErrors('budget', {
  exceeded: { status: 429, when: 'what the agent asks for would go beyond a cap of its budget' },
  price_unknown: { status: 409, when: 'the agent has a budget, and prices.toml has no price for the model that it asks an upstream for' },
  invalid_body: { status: 400, when: 'the body of an order to a budget is no JSON object' },
  invalid: { status: 400, when: 'a cap is not a number of US dollars from 0 up, or null' },
  invalid_estimate: { status: 400, when: 'an estimate is not a number of US dollars from 0 up' },
  invalid_charge: { status: 400, when: 'a charge has a field that is missing or wrong' },
  invalid_price: { status: 400, when: 'a price is not a number of US dollars from 0 up, or its name is none' },
  ledger_failed: { status: 503, when: 'the ledger of budgets cannot be read or written; requests of agents to upstreams wait for it' }
})
