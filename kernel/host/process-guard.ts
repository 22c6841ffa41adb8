import { currentPlugin } from './plugin-scope.js'

export interface GuardHandlers {
  /** The plugin an error belongs to, by its stack; null when that does not tell. */
  readonly owner: (error: unknown) => string | null
  readonly blame: (plugin: string, error: unknown) => void
  /** A failure of the gateway itself. */
  readonly fatal: (error: unknown) => void
  /** A rejection with something that is no error: without a stack nobody can be blamed, and nothing is known to be broken. */
  readonly stray: (reason: unknown) => void
}

/**
 * Keeps a plugin's stray failure from ending the gateway: rejections and exceptions that happen in a plugin's
 * own asynchronous work are laid at its door. Anything else is a defect of the gateway itself. Returns the
 * function that takes the guard away.
 */
export function guardProcess ({ owner, blame, fatal, stray }: GuardHandlers): () => void {
  const onFailure = (error: unknown): void => {
    const plugin = currentPlugin() ?? owner(error)
    if (plugin !== null) blame(plugin, error)
    else if (error instanceof Error) fatal(error)
    else stray(error)
  }
  process.on('unhandledRejection', onFailure)
  process.on('uncaughtException', onFailure)
  return () => {
    process.off('unhandledRejection', onFailure)
    process.off('uncaughtException', onFailure)
  }
}
