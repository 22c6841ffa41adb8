import { join } from 'node:path'
import type { Paths } from '../../../kernel/contract/index.js'
import { writeFileAtomic } from '../../../kernel/config/atomic-file.js'
import { configLock } from '../../../kernel/config/locker.js'
import { configFiles } from '../../../kernel/config/parts.js'
import { resolvePaths } from '../../../kernel/config/paths.js'
import { readText } from '../../../kernel/config/read-file.js'
import { writeFailed } from '../../../kernel/config/write-errors.js'
import { createWithLock } from '../../../kernel/state/file-lock.js'
import type { Cli } from '../../cli.js'
import { CliFailure } from '../../failure.js'

/** svc.toml of a home, as a text that a gateway may be writing too. */
export class SvcToml {
  readonly paths: Paths
  readonly path: string

  constructor (cli: Cli, home: string | undefined) {
    this.paths = resolvePaths(cli.env, home === undefined ? {} : { home })
    this.path = join(this.paths.etc, configFiles.svc)
  }

  /** Null when it is not there. */
  async read (): Promise<string | null> {
    const read = await readText(this.path, configFiles.svc)
    if (read.status === 'bad') throw new CliFailure(`${this.path} ${read.diagnostic.message}`)
    return read.status === 'missing' ? null : read.text
  }

  /** Runs `work` while nothing else, gateway or command, writes below the configuration root. */
  exclusively<T> (purpose: string, work: () => Promise<T>): Promise<T> {
    return createWithLock({ text: purpose })(configLock(this.paths), work)
  }

  /** Writes the file whole. Rejects when it is not `before` any more. */
  replace (before: string | null, after: string): Promise<void> {
    return this.exclusively('svc config edit', async () => {
      if (await this.read() !== before) {
        throw new CliFailure(`${this.path} was changed meanwhile`, { hints: ['Compare it with the copy, then edit it again.'] })
      }
      await writeFileAtomic(this.path, after).catch((error: unknown) => { throw writeFailed(this.paths.etc, this.path, error) })
    })
  }
}
