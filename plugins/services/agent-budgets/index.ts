import { join } from 'node:path'
import { agentOf, core, definePlugin, type OutgoingCall } from 'svc-gateway/plugin'
import { z } from 'zod'
import { agentPersonasRef } from '../agent-personas/ref.js'
import { BudgetBook } from './budgets.js'
import { budgetError } from './errors.js'
import { Ledger } from './ledger.js'
import { PriceTable, pricesFile } from './prices.js'
import { agentBudgetsRef } from './ref.js'
import { toll } from './toll.js'

const configSchema = z.strictObject({
  default_output_tokens: z.int().min(1).max(1_000_000).default(4096)
    .meta({ description: 'Tokens reserved for the answer of a request without its own limit' })
})

const FILE = 'ledger.db'

/** What agents may spend at upstreams: caps, prices, and a ledger. Nothing is asked while no agent has a budget. */
export default definePlugin({
  name: 'agent-budgets',
  kind: 'service',
  apiVersion: 1,
  errors: budgetError,
  configSchema,
  requires: {
    agents: core.agents, clock: core.clock, dispatch: core.dispatch, events: core.events, personas: agentPersonasRef
  },
  provides: [agentBudgetsRef],
  databases: [{ path: ({ own }) => join(own, FILE), upgrade: async path => (await Ledger.open(path)).close() }],
  register (ctx) {
    const { agents, clock, dispatch, events, personas } = ctx.services
    const { log } = ctx
    const file = ctx.addConfigFile(pricesFile)
    let table: PriceTable | null = null
    let end: (() => void) | null = null
    const book = new BudgetBook({
      clock,
      events,
      log,
      path: () => join(ctx.stateDir, FILE),
      watching: isOn => {
        if (!isOn) end?.()
        if (isOn) end ??= dispatch.watchOutgoing(call => toll(deps, call))
        else end = null
      }
    })
    const deps = {
      budgets: book,
      log,
      defaultOutput: ctx.config.default_output_tokens,
      agentOf: (headers: OutgoingCall['headers']) => agentOf(headers, agents),
      prices: () => table ??= new PriceTable(file.value.prices),
      activePersona: (agent: string) => personas.active(agent)
    }
    const prices = (): typeof file.value.prices => file.value.prices
    ctx.provide(agentBudgetsRef, {
      get: (...args) => book.get(...args),
      set: (...args) => book.set(...args),
      remove: (...args) => book.remove(...args),
      check: (...args) => book.check(...args),
      charge: (...args) => book.charge(...args),
      rows: (...args) => book.rows(...args),
      prices,
      setPrices: async patch => (await file.patch({ prices: patch })).prices
    })
    ctx.onStart(async () => {
      file.onChange(() => { table = null })
      await book.start()
    })
    ctx.onStop(async () => {
      end?.()
      await book.close()
    })
  }
})
