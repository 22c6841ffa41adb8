import type { Command } from 'commander'
import { z } from 'zod'
import type { Cli } from '../../cli.js'
import { CliFailure, usageFailure } from '../../failure.js'
import { examples } from '../../terminal/help.js'
import { harmless } from '../../terminal/text-width.js'
import { usd } from './budget.js'

const PATH = '/api/agents/prices'
const pricesSchema = z.looseObject({
  prices: z.record(z.string(), z.looseObject({
    input_usd_per_mtok: z.number(),
    cached_input_usd_per_mtok: z.number().optional(),
    output_usd_per_mtok: z.number(),
    request_usd: z.number()
  }))
})

interface Options { readonly json?: true }
interface Prices extends Options {
  readonly input?: number
  readonly output?: number
  readonly cached?: number
  readonly request?: number
}

export function addPriceCommands (agent: Command, cli: Cli): void {
  const prices = agent.command('prices').description('manage the prices of upstream models, which budgets need')

  prices.command('list')
    .description('list prices, in US dollars per million tokens')
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc agent prices list'))
    .action(async ({ json }: Options, self: Command) => {
      const answer = await cli.client(self).raw({ path: PATH })
      if (json === true) return cli.out.json(answer)
      const rows = Object.entries(pricesSchema.parse(answer).prices)
      if (rows.length === 0) return cli.out.line('There are no prices. Add one: svc agent prices set openrouter/gpt-4.1 --input 2 --output 8')
      cli.out.table([
        { title: 'MODEL', cell: ([key]) => harmless(key), flexible: true },
        { title: 'INPUT', cell: ([, price]) => String(price.input_usd_per_mtok) },
        { title: 'CACHED', cell: ([, price]) => String(price.cached_input_usd_per_mtok ?? price.input_usd_per_mtok), expendable: 1 },
        { title: 'OUTPUT', cell: ([, price]) => String(price.output_usd_per_mtok) },
        { title: 'REQUEST', cell: ([, price]) => String(price.request_usd), expendable: 2 }
      ], rows)
    })

  prices.command('set <upstream/model>')
    .description('set the price of a model; a * at the end matches anything')
    .option('--input <usd>', 'per million input tokens', usd)
    .option('--cached <usd>', 'per million input tokens that the upstream read from its cache; default is the price of other input', usd)
    .option('--output <usd>', 'per million output tokens', usd)
    .option('--request <usd>', 'for each request', usd)
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc agent prices set openrouter/gpt-4.1 --input 2 --output 8', 'svc agent prices set "lan/*" --request 0'))
    .action(async (key: string, { input, cached, output, request, json }: Prices, self: Command) => {
      const price = {
        input_usd_per_mtok: input, cached_input_usd_per_mtok: cached, output_usd_per_mtok: output, request_usd: request
      }
      if (Object.values(price).every(value => value === undefined)) {
        throw usageFailure('say what it costs', ['Give --input, --output, --cached or --request; 0 is free.'])
      }
      const answer = await cli.client(self).raw({ method: 'PATCH', path: PATH, body: { prices: { [key]: price } } })
      if (json === true) return cli.out.json(answer)
      cli.out.line(`The price of ${key} is set; it applies from the next request.`)
    })

  prices.command('rm <upstream/model>')
    .alias('remove')
    .description('remove the price of a model')
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc agent prices rm openrouter/gpt-4.1'))
    .action(async (key: string, { json }: Options, self: Command) => {
      const client = cli.client(self)
      const { prices: known } = await client.call({ path: PATH }, pricesSchema)
      if (!Object.hasOwn(known, key)) throw new CliFailure(`${key} has no price`, { hints: ['`svc agent prices list` shows all prices.'] })
      const answer = await client.raw({ method: 'PATCH', path: PATH, body: { prices: { [key]: null } } })
      if (json === true) return cli.out.json(answer)
      cli.out.line(`The price of ${key} is removed.`)
    })
}
