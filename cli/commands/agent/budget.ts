import { InvalidArgumentError, type Command } from 'commander'
import { z } from 'zod'
import type { Cli } from '../../cli.js'
import { pathOf, type ApiClient } from '../../client/client.js'
import { CliFailure } from '../../failure.js'
import { examples } from '../../terminal/help.js'
import { harmless } from '../../terminal/text-width.js'
import { USUAL_AGENT } from './personas.js'

const viewSchema = z.looseObject({
  budget: z.looseObject({
    daily_usd: z.number().nullable(),
    monthly_usd: z.number().nullable(),
    lifetime_usd: z.number().nullable(),
    per_call_max_usd: z.number().nullable(),
    hard_cap: z.boolean()
  }).nullable(),
  spend: z.looseObject({ today_usd: z.number(), mtd_usd: z.number(), lifetime_usd: z.number() })
})
type View = z.output<typeof viewSchema>

const ledgerSchema = z.looseObject({
  rows: z.array(z.looseObject({
    ts: z.string(),
    kind: z.string(),
    surface: z.string(),
    model: z.string(),
    upstream: z.string().nullable(),
    cost_usd: z.number()
  }))
})

interface Options { readonly agent: string, readonly persona?: string, readonly json?: true }

/** The parser of options takes null for no value. */
type Cap = number | 'none'

interface Caps extends Options {
  readonly daily?: Cap
  readonly monthly?: Cap
  readonly lifetime?: Cap
  readonly perCall?: Cap
  readonly soft?: true
  readonly hard?: true
}

export function addBudgetCommands (agent: Command, cli: Cli): void {
  const budget = agent.command('budget').description('limit what an agent may spend at upstreams')
  const command = (name: string, description: string): Command => budget.command(name)
    .description(description)
    .option('--agent <name>', 'whose', USUAL_AGENT)
    .option('--persona <id>', 'for one of its personas; default is the active one')
    .option('--json', 'print the API response')

  command('show', 'show caps and spending')
    .option('--ledger', 'list reservations, settlements and charges, newest first')
    .addHelpText('after', examples('svc agent budget show', 'svc agent budget show --agent pi --ledger'))
    .action(async (options: Options & { readonly ledger?: true }, self: Command) => {
      const client = cli.client(self)
      const path = await budgetPath(client, options)
      if (options.ledger === true) return await showLedger(cli, client, path, options.json)
      const answer = await client.raw({ path })
      if (options.json === true) return cli.out.json(answer)
      show(cli, viewSchema.parse(answer))
    })

  command('set', 'set or change the budget of an agent; caps that are not given stay')
    .option('--daily <usd>', 'daily cap (UTC days), or none', usdOrNone)
    .option('--monthly <usd>', 'monthly cap (UTC calendar months), or none', usdOrNone)
    .option('--lifetime <usd>', 'cap on the total, or none', usdOrNone)
    .option('--per-call <usd>', 'cap on the cost of one request, or none', usdOrNone)
    .option('--soft', 'only report requests over a cap')
    .option('--hard', 'refuse requests over a cap; the default')
    .addHelpText('after', examples('svc agent budget set --daily 2 --monthly 20', 'svc agent budget set --agent pi --daily none --soft'))
    .action(async ({ daily, monthly, lifetime, perCall, soft, hard, ...options }: Caps, self: Command) => {
      if (soft === true && hard === true) throw new CliFailure('--soft and --hard cannot be used together')
      const body = {
        daily_usd: capOf(daily), monthly_usd: capOf(monthly), lifetime_usd: capOf(lifetime), per_call_max_usd: capOf(perCall),
        ...(soft === true || hard === true ? { hard_cap: hard === true } : {})
      }
      const client = cli.client(self)
      const answer = await client.raw({ method: 'PUT', path: await budgetPath(client, options), body })
      if (options.json === true) return cli.out.json(answer)
      show(cli, viewSchema.parse(answer))
    })

  command('off', 'remove a budget; its past spending stays on record')
    .addHelpText('after', examples('svc agent budget off --agent pi'))
    .action(async (options: Options, self: Command) => {
      const client = cli.client(self)
      const answer = await client.raw({ method: 'DELETE', path: await budgetPath(client, options) })
      if (options.json === true) return cli.out.json(answer)
      cli.out.line(`${options.agent} no longer has a budget; its spending is not counted.`)
    })
}

async function budgetPath (client: ApiClient, { agent, persona }: Options): Promise<string> {
  const id = persona ?? (await client.call({ path: pathOf`/api/agents/${agent}/personas` }, z.looseObject({ active: z.string() }))).active
  return pathOf`/api/agents/${agent}/personas/${id}/budget`
}

function show (cli: Cli, { budget, spend }: View): void {
  if (budget === null) cli.out.line('There is no budget: spending is not counted. Set one: svc agent budget set --daily 2')
  const rows = [
    ['today', budget?.daily_usd, spend.today_usd], ['this month', budget?.monthly_usd, spend.mtd_usd],
    ['lifetime', budget?.lifetime_usd, spend.lifetime_usd], ['one request', budget?.per_call_max_usd, null]
  ] as const
  cli.out.table([
    { title: 'WINDOW', cell: ([window]) => window },
    { title: 'CAP', cell: ([, cap]) => cap == null ? 'none' : dollars(cap) },
    { title: 'SPENT', cell: ([,, spent]) => spent === null ? '' : dollars(spent) }
  ], rows)
  if (budget?.hard_cap === false) cli.out.note('Requests over a cap are reported, not refused.')
}

async function showLedger (cli: Cli, client: ApiClient, path: string, json: true | undefined): Promise<void> {
  const answer = await client.raw({ path: `${path}/ledger` })
  if (json === true) return cli.out.json(answer)
  const { rows } = ledgerSchema.parse(answer)
  if (rows.length === 0) return cli.out.line('Nothing was spent.')
  cli.out.table([
    { title: 'AT', cell: ({ ts }) => `${ts.slice(0, 19)}Z` },
    { title: 'KIND', cell: ({ kind }) => kind },
    { title: 'USD', cell: ({ cost_usd: cost }) => dollars(cost) },
    { title: 'SURFACE', cell: ({ surface }) => harmless(surface), expendable: 1 },
    { title: 'MODEL', cell: ({ upstream, model }) => harmless(upstream === null ? model : `${upstream}/${model}`), flexible: true }
  ], rows)
}

/** With as many digits as it takes to see something. */
function dollars (usd: number): string {
  return Number.isInteger(usd * 100) ? usd.toFixed(2) : String(Number(usd.toFixed(6)))
}

function usdOrNone (text: string): Cap {
  return text === 'none' ? text : usd(text)
}

function capOf (cap: Cap | undefined): number | null | undefined {
  return cap === 'none' ? null : cap
}

export function usd (text: string): number {
  const value = Number(text)
  if (text.trim() === '' || !Number.isFinite(value) || value < 0) throw new InvalidArgumentError('give a number of US dollars, such as 2 or 0.5')
  return value
}
