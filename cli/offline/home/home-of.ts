import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Command } from 'commander'
import { z } from 'zod'
import { resolvePaths } from '../../../kernel/config/paths.js'
import type { Paths } from '../../../kernel/contract/index.js'
import { ApiFailure } from '../../client/api-failure.js'
import type { Cli } from '../../cli.js'
import { CliFailure } from '../../failure.js'
import { askedBy, targetOf } from '../../client/target.js'

/** What is not there refuses at once; what is there may have a busy machine. */
const REACH_MS = 30_000

const identitySchema = z.looseObject({ instance: z.string(), home: z.string().nullable() })

export interface HomeOptions {
  /** A gateway that is named and does not answer: refused, or taken for one of the home that would be meant without it. */
  readonly silent?: 'refuse' | 'home'
}

/**
 * The folders that a command works on: of the home that is named, else of the gateway that is, else the system's, or where
 * the system has none those of the gateway that answers at the usual address. A gateway of another machine, or one on
 * another home than the one that is named beside it, is refused.
 */
export async function homeOf (cli: Cli, command: Command, { silent = 'refuse' }: HomeOptions = {}): Promise<Paths> {
  const target = targetOf(askedBy(command, cli.env))
  if (target.kind === 'home') return at(cli, target.home)
  if (target.kind === 'system') return await usualHome(cli, command)
  const { url, home } = target
  const client = cli.clientAt(url)
  const told = await client.call({ path: '/api/status', timeoutMs: REACH_MS }, identitySchema).catch((error: unknown) => {
    // what does not answer says nothing against the home that was named with it
    if ((home !== null || silent === 'home') && error instanceof CliFailure && !(error instanceof ApiFailure)) return null
    throw error
  })
  cli.signal.throwIfAborted()
  if (told === null) return at(cli, home)
  const paths = at(cli, told.home)
  if (await instanceOf(paths) !== told.instance) {
    throw new CliFailure(`the gateway at ${client.base} runs on another machine or in a container, but this command works on local files`, {
      hints: ['Run it there, or name a home of this machine with --home.']
    })
  }
  if (home !== null && await instanceOf(at(cli, home)) !== told.instance) {
    throw new CliFailure(`the gateway at ${client.base} runs on ${nameOf(paths)}, not on ${home}`, { hints: ['Use only one of --url and --home.'] })
  }
  return paths
}

async function usualHome (cli: Cli, command: Command): Promise<Paths> {
  const system = at(cli, cli.usual.home)
  if (await hasHome(system)) return system
  const told = await cli.client(command).call({ path: '/api/status', timeoutMs: REACH_MS }, identitySchema).catch(() => null)
  cli.signal.throwIfAborted()
  if (told === null) return system
  const running = at(cli, told.home)
  return await instanceOf(running) === told.instance ? running : system
}

async function hasHome (paths: Paths): Promise<boolean> {
  const roots = rootsOf(paths)
  const isThere = await Promise.all(roots.map(root => stat(root).then(stats => stats.isDirectory(), () => false)))
  return isThere.includes(true)
}

function rootsOf ({ home, etc, state }: Paths): string[] {
  return home === null ? [etc, state] : [home]
}

/** Commands that write make no home: who mistypes one, or has none yet, is told. */
export async function requireHome (paths: Paths): Promise<void> {
  if (await hasHome(paths)) return
  throw new CliFailure(`there is no gateway home at ${rootsOf(paths).join(' or ')}`, {
    hints: [paths.home === null
      ? 'Set the home with --home or SVC_HOME, or its gateway with --url. `svc setup` and `svc serve` create one.'
      : `If the path is right, \`svc serve --home ${paths.home}\` creates it.`]
  })
}

export function nameOf ({ home, state }: Pick<Paths, 'home' | 'state'>): string {
  return home ?? `this system (${state})`
}

function at ({ env }: Cli, home: string | null): Paths {
  return resolvePaths(env, { home: home ?? '' })
}

async function instanceOf ({ state }: Paths): Promise<string | null> {
  const path = join(state, 'instance-id')
  return await readFile(path, 'utf8').then(text => text.trim(), (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EACCES' && error.code !== 'EPERM') return null
    throw new CliFailure(`${path} cannot be read (${error.code})`, { hints: ['Run it as the user of the gateway.'] })
  })
}
