import { z } from 'zod'
import type { Cli } from '../../cli.js'
import type { ApiClient } from '../../client/client.js'
import { CliFailure } from '../../failure.js'
import { harmless } from '../../terminal/text-width.js'

const driftSchema = z.looseObject({
  slots: z.array(z.looseObject({
    slot: z.string(),
    diffs: z.array(z.looseObject({ key: z.string(), running: z.string().nullable(), rendered: z.string().nullable() }))
  }))
})
const restartedSchema = z.looseObject({
  restarted: z.array(z.string()), failed: z.array(z.looseObject({ slot: z.string(), error: z.string() }))
})

/** Lists the slots that run otherwise than they would be started now. */
export async function showDrift (cli: Cli, client: ApiClient, json: boolean): Promise<void> {
  const answer = await client.raw({ path: '/api/updates/slot-drift' })
  if (json) return cli.out.json(answer)
  const { slots } = driftSchema.parse(answer)
  if (slots.length === 0) return cli.out.line('All running slots have their current settings.')
  const rows = slots.flatMap(({ slot, diffs }) => diffs.length === 0
    ? [{ slot, key: '-', running: null, rendered: null }] : diffs.map(each => ({ slot, ...each })))
  cli.out.table([
    { title: 'SLOT', cell: ({ slot }) => slot },
    { title: 'KEY', cell: ({ key }) => harmless(key) },
    { title: 'RUNNING', cell: ({ running }) => harmless(running ?? '-'), expendable: 1 },
    { title: 'NOW', cell: ({ rendered }) => harmless(rendered ?? '-'), flexible: true }
  ], rows)
  cli.out.line('`svc update --restart-slots` restarts them.')
}

/** Throws a `CliFailure` that names those that could not be restarted. */
export async function restartDrifted (cli: Cli, client: ApiClient, json: boolean): Promise<void> {
  const answer = await client.raw({ method: 'POST', path: '/api/updates/restart-slots', body: {}, timeoutMs: null })
  const { restarted, failed } = restartedSchema.parse(answer)
  if (json) cli.out.json(answer)
  else cli.out.line(restarted.length === 0 ? 'No slot was restarted.' : `Restarted: ${restarted.join(', ')}.`)
  if (failed.length === 0) return
  throw new CliFailure(`${failed.length} could not be restarted`, { hints: failed.map(({ slot, error }) => harmless(`${slot}: ${error}`)) })
}
