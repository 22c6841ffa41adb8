import { setTimeout as wait } from 'node:timers/promises'
import { ApiFailure } from '../client/api-failure.js'
import type { Cli } from '../cli.js'
import { pathOf, type ApiClient } from '../client/client.js'
import { CliFailure } from '../failure.js'
import { progressLine, progressText } from './progress-line.js'
import { isOver, pullSnapshotSchema, type PullSnapshot } from './snapshot.js'

const POLL_MS = 500
/** How long a gateway may be away, as while it is restarted: the pull goes on by itself afterwards. */
const AWAY_MS = 60_000

/**
 * Follows a pull to its end: a bar that is drawn over at a terminal, else a line at every tenth of the way. Goes on
 * over a restart of the gateway.
 */
export async function followPull (cli: Cli, client: ApiClient, modelId: string): Promise<PullSnapshot> {
  const show = cli.out.animated ? drawn(cli) : logged(cli)
  try {
    for (let lastSeen = performance.now(); ;) {
      const snapshot = await look(client, modelId).catch((error: unknown) => {
        cli.signal.throwIfAborted()
        const isAway = error instanceof CliFailure && !(error instanceof ApiFailure && error.status < 500)
        if (!isAway || performance.now() - lastSeen > AWAY_MS) throw error
        return null
      })
      if (snapshot === null) {
        if (cli.out.animated) cli.out.redraw(`${modelId}: the gateway does not answer; waiting`)
      } else {
        lastSeen = performance.now()
        show(snapshot)
        if (isOver(snapshot)) return snapshot
      }
      await wait(POLL_MS, undefined, { signal: cli.signal }).catch(() => cli.signal.throwIfAborted())
    }
  } finally {
    cli.out.redraw('')
  }
}

function look (client: ApiClient, modelId: string): Promise<PullSnapshot> {
  return client.call({ path: pathOf`/api/models/${modelId}/pull/status` }, pullSnapshotSchema)
}

function drawn ({ out }: Cli): (snapshot: PullSnapshot) => void {
  return snapshot => out.redraw(progressLine(snapshot, out.width - 1))
}

function logged ({ out }: Cli): (snapshot: PullSnapshot) => void {
  let tenth = -1
  let message = ''
  return snapshot => {
    const now = snapshot.bytes_total === 0 ? 0 : Math.floor(snapshot.bytes_downloaded / snapshot.bytes_total * 10)
    // a wait counts its seconds down: that it waits is said once
    const kind = snapshot.message.replace(/\d+/g, '')
    if (isOver(snapshot) || (now === tenth && (kind === message || kind === ''))) return
    tenth = now
    message = kind
    out.note(progressText(snapshot))
  }
}
