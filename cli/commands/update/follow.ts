import { setTimeout as wait } from 'node:timers/promises'
import { z } from 'zod'
import { ApiFailure } from '../../client/api-failure.js'
import type { Cli } from '../../cli.js'
import { pathOf, type ApiClient } from '../../client/client.js'
import { CliFailure } from '../../failure.js'
import { oneLine, truncate } from '../../terminal/text-width.js'

export const updateJobSchema = z.looseObject({
  id: z.string(),
  kind: z.string(),
  state: z.string(),
  phase: z.string(),
  resolved_version: z.string().nullable(),
  progress: z.number().nullable(),
  notes: z.array(z.string()),
  restart_required: z.boolean(),
  error: z.string().nullable()
})
export type UpdateJob = z.output<typeof updateJobSchema>

const LOOK_EVERY_MS = 500
/** A release that does not stay has four minutes for that, and then the one before starts. */
const MOST_MS = 600_000
/** How long the gateway may be away while it starts again. */
const AWAY_MS = 180_000

/** Waits until an update is over, across the restart of the gateway, and says how far it is. */
export async function followUpdate (cli: Cli, client: ApiClient, id: string): Promise<UpdateJob> {
  const { out, signal } = cli
  const begun = performance.now()
  let [told, heard] = ['', begun]
  try {
    for (;;) {
      const job = await look(client, id)
      if (job !== null) heard = performance.now()
      if (job !== null && isOver(job)) return job
      const now = performance.now()
      if (now - heard > AWAY_MS) throw new CliFailure('the gateway did not come back', { hints: ['Its log says why: journalctl -u svc-api'] })
      if (now - begun > MOST_MS) throw new CliFailure('the update is taking very long; `svc status` shows what is running')
      const line = job === null ? 'the gateway is restarting' : phaseText(job)
      if (line !== told && out.animated) out.redraw(truncate(oneLine(line), out.width - 1))
      else if (line.replace(/ \d+ %$/, '') !== told.replace(/ \d+ %$/, '')) out.note(line)
      told = line
      await wait(LOOK_EVERY_MS, undefined, { signal })
    }
  } catch (error) {
    if (signal.aborted) out.note('The gateway continues with it.')
    signal.throwIfAborted()
    throw error
  } finally {
    out.redraw('')
  }
}

/** Null while the gateway is away. */
async function look (client: ApiClient, id: string): Promise<UpdateJob | null> {
  try {
    return await client.call({ path: pathOf`/api/updates/status/${id}` }, updateJobSchema)
  } catch (error) {
    if (error instanceof ApiFailure && error.status < 500) throw error
    if (!(error instanceof CliFailure)) throw error
    return null
  }
}

function isOver ({ state, restart_required: waits }: UpdateJob): boolean {
  return state === 'applied' || state === 'failed' || (state === 'prepared' && waits)
}

function phaseText ({ phase, progress, resolved_version: version }: UpdateJob): string {
  const texts: Readonly<Record<string, string>> = {
    checking: 'asking the channel',
    downloading: `downloading ${version ?? ''}${progress === null ? '' : ` ${Math.floor(progress * 100)} %`}`,
    verifying: 'checking the signature',
    unpacking: 'unpacking',
    trying: `trying ${version ?? 'it'} on a copy of the home`,
    restarting: 'the gateway is restarting',
    confirming: `${version ?? 'it'} is running, and stays if it still answers in a moment`
  }
  return texts[phase] ?? phase
}
