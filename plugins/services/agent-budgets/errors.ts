import { defineErrors } from 'svc-gateway/plugin'

export const budgetError = defineErrors('budget', {
  exceeded: { status: 429, when: 'the request would exceed a cap of the agent\'s budget' },
  price_unknown: { status: 409, when: 'the agent has a budget, but prices.toml has no price for the upstream model' },
  invalid_body: { status: 400, when: 'the body of a budget request is not a JSON object' },
  invalid: { status: 400, when: 'a cap is not a number of US dollars from 0 up, or null' },
  invalid_estimate: { status: 400, when: 'an estimate is not a number of US dollars from 0 up' },
  invalid_charge: { status: 400, when: 'a charge has a missing or invalid field' },
  invalid_price: { status: 400, when: 'a price is not a number of US dollars from 0 up, or its name is invalid' },
  ledger_failed: { status: 503, when: 'the ledger of budgets cannot be read or written; requests of agents to upstreams wait for it' }
})
