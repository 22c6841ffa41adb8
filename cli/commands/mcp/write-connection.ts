import { copyFile, mkdir, readFile, realpath, rename, stat, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Cli } from '../../cli.js'
import { CliFailure } from '../../failure.js'
import { messageOf } from '../../../kernel/contract/errors/errors.js'
import { mergeConnection } from './config-merge.js'
import type { Connection } from './mcp-clients.js'

/** A connection under the name that it has in the configuration. */
export interface Named { readonly name: string, readonly connection: Connection }

/** Writes connections to one configuration file: all of them or none. The rest of it stays; as it was, it is kept beside. */
export async function writeConnections (cli: Cli, file: string, pieces: readonly Named[], isQuiet: boolean): Promise<void> {
  try {
    // a configuration that is kept elsewhere, and linked to, stays a link
    const target = await realpath(file).catch(() => file)
    const before = await readFile(target, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return null
      throw error
    })
    const isNew = before === null || before.trim() === ''
    const wanted = pieces.filter(({ connection: { onlyIfNew = false } }) => isNew || !onlyIfNew)
    const after = wanted.reduce((text, piece) => merged(file, text, piece), before)
    if (after === before || after === null) return isQuiet ? undefined : cli.out.line(`${file} already has it.`)
    await mkdir(dirname(target), { recursive: true })
    if (before !== null) await copyFile(target, `${target}.svc-backup`)
    const mode = before === null ? 0o600 : (await stat(target)).mode & 0o777
    await writeFile(`${target}.svc-new`, after, { mode })
    await rename(`${target}.svc-new`, target)
    if (isQuiet) return
    cli.out.line(`${file} is written${before === null ? '' : `; backup: ${target}.svc-backup`}.`)
  } catch (error) {
    if (error instanceof CliFailure) throw error
    throw new CliFailure(`${file} cannot be written: ${messageOf(error)}`)
  }
}

function merged (file: string, before: string | null, { name, connection }: Named): string | null {
  const outcome = mergeConnection(before, name, connection)
  if (outcome.kind === 'changed') return outcome.text
  if (outcome.kind === 'same') return before
  throw new CliFailure(`${file} was not changed: ${outcome.why}`, {
    hints: ['Add this by hand:', ...connection.text.trimEnd().split('\n')]
  })
}
