import { Option, type Command } from 'commander'
import { z } from 'zod'
import type { Cli } from '../../cli.js'
import type { ApiClient } from '../../client/client.js'
import { CliFailure, usageFailure } from '../../failure.js'
import { examples } from '../../terminal/help.js'
import { harmless } from '../../terminal/text-width.js'

const engineSchema = z.looseObject({
  enabled: z.boolean(),
  engine: z.string().nullable(),
  reachable: z.boolean(),
  version: z.string().nullable(),
  banks_total: z.number().nullable(),
  detail: z.string().nullable(),
  steps: z.record(z.string(), z.string().nullable()).default({})
})

interface EnableOptions {
  readonly engine?: 'embedded' | 'hindsight'
  readonly server?: string
  readonly json?: true
}

/** The engine is opened, or a server asked, before the answer comes. */
const LOOK_MS = 30_000
const call = { path: '/api/memory/engine', timeoutMs: LOOK_MS }

export function addMemoryState (memory: Command, cli: Cli): void {
  memory.command('status')
    .description('show whether the memory is on, which engine holds it, and what is missing')
    .option('--json', 'print the API response')
    .addHelpText('after', '\nExits with 1 if the memory is on and does not answer.')
    .addHelpText('after', examples('svc memory status'))
    .action((options: { json?: true }, command: Command) => show(cli, cli.client(command), options.json === true))
  memory.command('enable')
    .description('switch the memory on; takes effect at once')
    .addOption(new Option('--engine <engine>', 'engine: the gateway itself, or a Hindsight server').choices(['embedded', 'hindsight']))
    .option('--server <url>', 'address of the Hindsight server')
    .option('--json', 'print the API response')
    .addHelpText('after', '\nThe key of a Hindsight server goes into api.env, as HINDSIGHT_API_TENANT_API_KEY.')
    .addHelpText('after', examples('svc memory enable', 'svc memory enable --engine hindsight --server http://127.0.0.1:9177'))
    .action(async ({ engine, server, json }: EnableOptions, command: Command) => {
      if (server !== undefined && engine === 'embedded') throw usageFailure('--server needs --engine hindsight')
      const chosen = server === undefined ? engine : 'hindsight'
      const settings = { enabled: true, engine: chosen, url: server }
      const client = cli.client(command)
      await client.raw({ method: 'PUT', path: '/api/settings', body: { memory: settings } })
      await show(cli, client, json === true)
    })
  memory.command('disable')
    .description('switch the memory off; its contents stay')
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc memory disable'))
    .action(async (options: { json?: true }, command: Command) => {
      const client = cli.client(command)
      await client.raw({ method: 'PUT', path: '/api/settings', body: { memory: { enabled: false } } })
      await show(cli, client, options.json === true)
    })
}

async function show (cli: Cli, client: ApiClient, json: boolean): Promise<void> {
  const answer = await client.raw(call)
  const { enabled, engine, reachable, version, banks_total: banks, detail, steps } = engineSchema.parse(answer)
  if (json) {
    cli.out.json(answer)
  } else if (!enabled) {
    cli.out.line('The memory is off. Switch it on: svc memory enable')
  } else {
    cli.out.pairs([
      ['memory', reachable ? 'on' : 'on, but not answering'],
      ['engine', engine],
      ['wire', version],
      ['banks', banks === null ? null : String(banks)],
      ...Object.entries(steps).map(([step, why]): [string, string] => [step, harmless(why ?? 'on')])
    ])
  }
  if (!enabled || reachable) return
  throw new CliFailure(detail === null ? 'the memory does not answer' : harmless(detail))
}
