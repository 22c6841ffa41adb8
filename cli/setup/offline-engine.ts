import { resolve } from 'node:path'
import type { Command } from 'commander'
import { PROGRAM } from '../../plugins/providers/llm-server/words.js'
import { resolvePaths } from '../../kernel/config/paths.js'
import type { Paths } from '../../kernel/contract/index.js'
import type { Cli } from '../cli.js'
import { CliFailure } from '../failure.js'
import { bringEmbedded, lacksEngine } from '../offline/engines/engines.js'
import { homeOf } from '../offline/home/home-of.js'
import { sizeText } from '../terminal/size-text.js'
import { Prompt } from './prompt.js'

export interface OfferOptions {
  readonly home: string | undefined
  /** The gateway of this setup runs in this process. */
  readonly isOwn: boolean
  readonly asks: boolean
  readonly downloads: boolean
}

/** Where nothing here can run a model, the embedded engine is offered: slots would be made and never start. */
export async function offerEngine (cli: Cli, command: Command, options: OfferOptions): Promise<void> {
  const { out } = cli
  const paths = await pathsOf(cli, command, options)
  if (paths === null || !await lacksEngine(cli, paths)) return
  out.note(`No engine for models was found: no container engine answers, and ${PROGRAM} is not installed.`)
  if (!options.downloads || (options.asks && !await agrees(cli))) {
    return out.note('Slots start once there is one: svc engine install embedded')
  }
  try {
    const { bytes } = await bringEmbedded(cli, paths, { gpu: 'auto' })
    out.note(`The embedded engine is installed: ${sizeText(bytes)}.`)
  } catch (error) {
    if (cli.signal.aborted || !(error instanceof CliFailure)) throw error
    out.note([`Warning: the embedded engine could not be installed: ${error.message}`, ...error.hints].join('\n'))
    out.note('Try again with: svc engine install embedded')
  }
}

/** Null where the gateway is on another machine. */
async function pathsOf (cli: Cli, command: Command, { home, isOwn }: OfferOptions): Promise<Paths | null> {
  if (isOwn) return resolvePaths(cli.env, home === undefined ? {} : { home: resolve(cli.process.cwd(), home) })
  try {
    return await homeOf(cli, command)
  } catch (error) {
    if (error instanceof CliFailure) return null
    throw error
  }
}

async function agrees (cli: Cli): Promise<boolean> {
  const prompt = new Prompt(cli)
  try {
    return await prompt.confirm('Download the embedded engine (about 80 MB)?', true)
  } finally {
    prompt.close()
  }
}
