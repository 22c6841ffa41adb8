import { resolve } from 'node:path'
import { PROGRAM } from '../../plugins/providers/llm-server/words.js'
import { resolvePaths } from '../../kernel/config/paths.js'
import type { Cli } from '../cli.js'
import { CliFailure } from '../failure.js'
import { bringEmbedded, lacksEngine } from '../offline/engines/engines.js'
import { sizeText } from '../terminal/size-text.js'

/**
 * Downloads the embedded engine when nothing else here could run the demo's model. Where that fails, `warn` goes on: the
 * gateway serves what needs no engine.
 */
export async function bringForDemo (cli: Cli, home: string | undefined, onFailure: 'warn' | 'fail'): Promise<void> {
  const paths = resolvePaths(cli.env, home === undefined || home === '' ? {} : { home: resolve(cli.process.cwd(), home) })
  if (!await lacksEngine(cli, paths)) return
  cli.out.note(`There is no container engine and no ${PROGRAM} here.`)
  try {
    const { version, bytes } = await bringEmbedded(cli, paths, { gpu: 'none' })
    cli.out.note(`The embedded engine ${version} is installed: ${sizeText(bytes)}.`)
  } catch (error) {
    if (onFailure === 'fail' || cli.signal.aborted || !(error instanceof CliFailure)) throw error
    cli.out.note([`Warning: the embedded engine could not be installed: ${error.message}`, ...error.hints].join('\n'))
    cli.out.note('The gateway starts without it. Try again with: svc engine install embedded')
  }
}
