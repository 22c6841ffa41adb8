import type { Command } from 'commander'
import { z } from 'zod'
import type { Cli } from '../../cli.js'
import type { ApiClient } from '../../client/client.js'
import { examples } from '../../terminal/help.js'
import { harmless } from '../../terminal/text-width.js'

const statusSchema = z.looseObject({
  enabled: z.boolean(),
  extraction_slot: z.string(),
  slot_resolves: z.boolean(),
  available_slots: z.array(z.string()),
  in_flight: z.number(),
  builds_ok: z.number(),
  errors: z.number(),
  last_built_at: z.string().nullable(),
  last_error: z.string().nullable(),
  banks: z.number(),
  banks_counted: z.number(),
  llm_timeout_s: z.number()
})
type GraphStatus = z.output<typeof statusSchema>
const savedSchema = z.looseObject({
  status: statusSchema, propagation: z.looseObject({ error: z.string().nullable() }).optional()
})

/** A Hindsight server is restarted before the answer comes. */
const RESTART_MS = 150_000

export function addMemoryGraph (memory: Command, cli: Cli): void {
  const graph = memory.command('graph').description('extract facts and entities from memories')
  graph.command('status')
    .description('show whether extraction is on, which slot does it, and its results')
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc memory graph status'))
    .action(async (options: { json?: true }, command: Command) => {
      const answer = await cli.client(command).raw({ path: '/api/memory/graph', timeoutMs: RESTART_MS })
      if (options.json === true) return cli.out.json(answer)
      show(cli, statusSchema.parse(answer))
    })
  graph.command('enable')
    .description('turn extraction on')
    .option('--slot <name>', 'enabled llm slot that extracts')
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc memory graph enable --slot utility'))
    .action(async ({ slot, json }: { slot?: string, json?: true }, command: Command) => {
      const body = { enabled: true, ...slot === undefined ? {} : { extraction_slot: slot } }
      await change(cli, cli.client(command), body, json === true)
    })
  graph.command('disable')
    .description('turn extraction off and cancel what is running; extracted facts stay')
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc memory graph disable'))
    .action(async (options: { json?: true }, command: Command) => {
      await change(cli, cli.client(command), { enabled: false }, options.json === true)
    })
}

async function change (cli: Cli, client: ApiClient, body: object, json: boolean): Promise<void> {
  const answer = await client.raw({ method: 'PUT', path: '/api/memory/graph', body, timeoutMs: RESTART_MS })
  if (json) return cli.out.json(answer)
  const { status, propagation } = savedSchema.parse(answer)
  show(cli, status)
  if (propagation?.error != null) cli.out.note(harmless(propagation.error))
}

function show (cli: Cli, status: GraphStatus): void {
  const { enabled, extraction_slot: slot, slot_resolves: isThere, available_slots: slots } = status
  const others = slots.length === 0 ? 'there is none yet' : `there are ${slots.join(', ')}`
  cli.out.pairs([
    ['extraction', enabled ? 'on' : 'off'],
    ['slot', isThere ? slot : `${slot}, which is not an enabled llm slot: ${others}`],
    ['timeout', `${status.llm_timeout_s} s`],
    ['waiting', String(status.in_flight)],
    ['done', String(status.builds_ok)],
    ['failed', String(status.errors)],
    ['last', status.last_built_at],
    ['counted', `${status.banks_counted} of ${status.banks} banks`],
    ['problem', status.last_error === null ? null : harmless(status.last_error)]
  ])
}
