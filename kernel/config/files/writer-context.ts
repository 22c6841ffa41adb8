import type { Logger, Paths } from '../../contract/index.js'
import type { FileOps } from './atomic-file.js'

/** Writers of the files under the configuration root. All of them are called with the configuration lock held. */
export interface WriterContext {
  readonly paths: Paths
  readonly log: Logger
  readonly ops?: FileOps
}
