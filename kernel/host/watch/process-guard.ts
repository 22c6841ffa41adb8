import { currentPlugin } from './plugin-scope.js'

export interface GuardHandlers {
  /** The plugin an error belongs to, by its stack; null when that does not tell. */
  readonly owner: (error: unknown) => string | null
  readonly blame: (plugin: string, error: unknown) => void
  /** A failure of the gateway itself. */
  readonly fatal: (error: unknown) => void
  /** A rejection with something that is no error: without a stack no plugin can be blamed, and nothing is known to be broken. */
  readonly stray: (reason: unknown) => void
  /** What Node warns of, a leak for one: it would print that between the lines of the log. */
  readonly warning: (warning: Error) => void
}

/**
 * Keeps a plugin's stray failure from ending the gateway: rejections and exceptions that happen in a plugin's
 * own asynchronous work are laid at its door. Anything else is a defect of the gateway itself. Returns the
 * function that takes the guard away.
 */
export function guardProcess ({ owner, blame, fatal, stray, warning }: GuardHandlers): () => void {
  const onFailure = (error: unknown): void => {
    const plugin = currentPlugin() ?? owner(error)
    if (plugin !== null) blame(plugin, error)
    else if (error instanceof Error) fatal(error)
    else stray(error)
  }
  process.on('unhandledRejection', onFailure)
  process.on('uncaughtException', onFailure)
  const printers = process.listeners('warning')
  process.removeAllListeners('warning')
  process.on('warning', warning)
  return () => {
    process.off('warning', warning)
    for (const printer of printers) process.on('warning', printer)
    process.off('unhandledRejection', onFailure)
    process.off('uncaughtException', onFailure)
  }
}
