import { isIP } from 'node:net'
import type { Command } from 'commander'
import { z } from 'zod'
import { ApiFailure, parseBase } from '../client/api-failure.js'
import type { Cli } from '../cli.js'
import type { ApiClient } from '../client/client.js'
import { CliFailure } from '../failure.js'
import { askedBy, targetOf } from '../client/target.js'

/** The gateway that a first run is made with. */
export interface SetupGateway {
  readonly client: ApiClient
  /** It runs in this process and ends with it. */
  readonly isOwn: boolean
}

/** What is not there refuses at once; what is there may have a busy machine. */
const REACH_MS = 30_000

/**
 * Runs `work` with the gateway that the command means, and with one of this process where that does not answer. An address
 * of another machine that does not answer is a failure.
 */
export async function withGateway<T> (
  cli: Cli, command: Command, home: string | undefined, work: (gateway: SetupGateway) => Promise<T>
): Promise<T> {
  const target = targetOf(askedBy(command, cli.env))
  const client = cli.gateway(command)
  if (client !== null) {
    const failure = await unreachable(client)
    if (failure === null) return await work({ client, isOwn: false })
    if (target.kind === 'gateway' && !isLocal(target.url)) throw failure
  }
  const { withOwnGateway } = await import('./offline-gateway.js')
  cli.out.note('No gateway runs; this is set up for the next one.')
  return await withOwnGateway(cli, home, own => work({ client: cli.clientAt(own), isOwn: true }))
}

/** Why nothing answers there; null when something does. What answers and refuses is no gateway to set up. */
async function unreachable (client: ApiClient): Promise<CliFailure | null> {
  try {
    await client.call({ path: '/api/install/state', timeoutMs: REACH_MS }, z.looseObject({ first_run: z.boolean() }))
    return null
  } catch (error) {
    const isSilent = error instanceof CliFailure && !(error instanceof ApiFailure) && error.cause !== undefined
    if (!isSilent) throw error
    return error
  }
}

function isLocal (url: string): boolean {
  const host = parseBase(url).hostname.replace(/^\[|\]$/g, '')
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
}
