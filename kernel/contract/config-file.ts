import type { z } from 'zod'

/** A file below the configuration root that a plugin owns. */
export interface ConfigFileDefinition<S extends z.ZodType = z.ZodType> {
  /** Right below the root: lower case letters, digits and `-`, then `.toml`. None that the gateway has itself. */
  readonly file: string
  /** Of the whole file. Takes an empty table, which is what a file says that is not there. */
  readonly schema: S
}

/** What a plugin holds of its file. It is read, checked, told of, written and recovered as the gateway's own files are. */
export interface ConfigFile<T> {
  /**
   * What it says; while it is broken, what it said when it was good last, and before that what an empty one says. Read by the
   * time of `onStart`; the same object until it changes.
   */
  readonly value: T
  /** Called after each change, however it came about. Ends with the plugin; returns the unsubscriber. */
  onChange (listener: (next: T, previous: T) => void): () => void
  /**
   * Tables merge, everything else replaces, null deletes; comments stay. Resolves with what the file says then. Throws
   * `validation.invalid`, `validation.unknown_keys`, `config.parse_error`, `config.write_failed`; nothing is written then.
   */
  patch (patch: Readonly<Record<string, unknown>>): Promise<T>
}
