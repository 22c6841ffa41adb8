import { stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { writeFileAtomic } from '../../kernel/config/files/atomic-file.js'
import { dotted } from '../../kernel/config/check/shape-check.js'
import { parseToml } from '../../kernel/config/toml/toml-file.js'
import { readRegistry } from '../../kernel/models/registry-file.js'
import { createWithLock } from '../../kernel/state/file-lock.js'
import type { Paths } from '../../kernel/contract/index.js'
import type { Cli } from '../cli.js'
import { CliFailure, usageFailure } from '../failure.js'
import { requireHome } from './home/home-of.js'
import { registryInArchive } from './registry-archive.js'

export interface ImportOptions {
  readonly force?: true
  readonly dest?: string
}

/** Restores the registry, and nothing else, from a backup of an earlier installation. Needs no gateway; one that runs sees it. */
export async function importRegistry (cli: Cli, paths: Paths, archive: string, options: ImportOptions): Promise<void> {
  const from = cli.process.cwd()
  const dest = options.dest === undefined ? paths.registry : resolve(from, options.dest)
  const text = await registryInArchive(resolve(from, archive), cli.signal)
  const { models, problems } = parsed(archive, text)
  if (options.dest === undefined) await requireHome(paths)
  await createWithLock({ text: 'svc registry import' })(`${dest}.lock`, async () => {
    if (options.force !== true && await stat(dest).then(() => true, () => false)) {
      throw new CliFailure(`${dest} exists`, { hints: ['--force replaces it.'] })
    }
    await writeFileAtomic(dest, text)
  })
  for (const { path, message } of problems) cli.out.note(`Warning: ${dotted(path)} ${message}; the gateway ignores it`)
  cli.out.line(`Restored ${models.size} models to ${dest}.`)
}

function parsed (archive: string, text: string): ReturnType<typeof readRegistry> {
  try {
    return readRegistry(parseToml(text))
  } catch (error) {
    throw usageFailure(`the registry in ${archive} is not valid TOML: ${error instanceof Error ? error.message.split('\n', 1)[0]! : String(error)}`)
  }
}
