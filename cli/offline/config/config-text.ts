import { join } from 'node:path'
import type { Logger, Paths } from '../../../kernel/contract/index.js'
import { configLock } from '../../../kernel/config/locker.js'
import { configFiles } from '../../../kernel/config/parts/config-parts.js'
import { readText } from '../../../kernel/config/files/read-file.js'
import { commitFiles, recoverFiles } from '../../../kernel/config/files/transaction.js'
import { createWithLock } from '../../../kernel/state/file-lock.js'
import { CliFailure } from '../../failure.js'

/** A file of the configuration of a home, as a text that a gateway may be writing too. */
export class ConfigText {
  readonly paths: Paths
  /** Below the configuration root. */
  readonly file: string
  readonly path: string

  constructor (paths: Paths, file: string = configFiles.svc) {
    this.paths = paths
    this.file = file
    this.path = join(this.paths.etc, file)
  }

  /** Null when it is not there. */
  async read (): Promise<string | null> {
    const read = await readText(this.path, this.file)
    if (read.status === 'bad') throw new CliFailure(`${this.path} ${read.diagnostic.message}`)
    return read.status === 'missing' ? null : read.text
  }

  /** Runs `work` while nothing else, gateway or command, writes below the configuration root. */
  exclusively<T> (purpose: string, work: () => Promise<T>): Promise<T> {
    return createWithLock({ text: purpose })(configLock(this.paths), work)
  }

  /** Writes the file whole. Rejects when it is not `before` any more. */
  replace (before: string | null, after: string): Promise<void> {
    const context = { paths: this.paths, log: quietLog }
    return this.exclusively('svc config edit', async () => {
      await recoverFiles(context)
      if (await this.read() !== before) {
        throw new CliFailure(`${this.path} was changed in the meantime`, { hints: ['Compare it with the copy, then edit it again.'] })
      }
      await commitFiles(context, [{ root: 'etc', file: this.file, content: after, fresh: before === null }])
    })
  }
}

const quiet = (): void => {}
const quietLog: Logger = { debug: quiet, info: quiet, warn: quiet, error: quiet }
