/**
 * A small table that outlives the gateway: what a plugin must know at its next start. Values are plain JSON data of at most
 * 64 KiB each, keys text of at most 200 characters, and a plugin has at most 10,000 of them. Every write is on the disk when
 * the call returns; each costs a disk write, so it is no place for what changes many times a second. Rejected writes throw
 * `plugin.state_invalid`, a database that cannot be used `state.database_failed`. Works from `register` on, until the
 * plugin has stopped.
 */
export interface PluginTable {
  /** Undefined where there is nothing. */
  get (key: string): unknown
  set (key: string, value: unknown): void
  /** Whether there was one. */
  delete (key: string): boolean
  /** Keys with this beginning, sorted. */
  keys (beginning?: string): readonly string[]
}
