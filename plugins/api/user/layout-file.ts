import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf, type ConfigService, type Logger } from 'svc-gateway/plugin'
import { layoutSchema, type Layout } from './layout.js'

const FILE = 'dashboard-layout.json'

/** The one layout of this installation, in a file of its own below the state root. */
export class LayoutFile {
  readonly #config: ConfigService
  readonly #log: Logger

  constructor (config: ConfigService, log: Logger) {
    this.#config = config
    this.#log = log
  }

  /** Null when none was saved. A file that is broken counts as none: a dashboard can always begin anew. */
  async read (): Promise<Layout | null> {
    const path = join(this.#config.paths.state, FILE)
    try {
      return layoutSchema.parse(JSON.parse(await readFile(path, 'utf8')))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') this.#log.warn({ path }, `the dashboard layout is ignored: ${messageOf(error)}`)
      return null
    }
  }

  /** Throws `config.write_failed`. */
  async write (layout: Layout): Promise<void> {
    await this.#config.change(draft => draft.putState(FILE, `${JSON.stringify(layout, null, 2)}\n`))
  }
}
