import { isSvcError, messageOf, svcError, type PluginTable, type SvcError } from '../contract/index.js'
import type { Database } from './database.js'

const LONGEST_KEY = 200
const LARGEST_VALUE_BYTES = 64 * 1024
const MOST_KEYS = 10_000

/** The tables of all plugins, each seen by its own plugin only. */
export class PluginTables {
  readonly #database: Database

  constructor (database: Database) {
    this.#database = database
  }

  of (plugin: string): PluginTable {
    const { connection, transaction } = this.#database
    const all = <T>(sql: string, values: readonly unknown[]): T[] =>
      attempt(() => connection.prepare(sql).all([...values]) as T[])
    return {
      get: key => {
        const [row] = all<{ value: string }>('SELECT value FROM plugin_state WHERE plugin = ? AND key = ?', [plugin, key])
        return row === undefined ? undefined : JSON.parse(row.value) as unknown
      },
      set: (key, value) => {
        const text = checked(plugin, key, value)
        attempt(() => transaction(() => {
          const { changes } = connection.prepare('UPDATE plugin_state SET value = ? WHERE plugin = ? AND key = ?').run([text, plugin, key])
          if (changes > 0) return
          const [{ count }] = connection.prepare('SELECT count(*) AS count FROM plugin_state WHERE plugin = ?').all([plugin]) as [{ count: number }]
          if (count >= MOST_KEYS) throw refused(plugin, `it already has ${MOST_KEYS} keys; delete some, or use a file in ctx.stateDir`)
          connection.prepare('INSERT INTO plugin_state (plugin, key, value) VALUES (?, ?, ?)').run([plugin, key, text])
        }))
      },
      delete: key => attempt(() => connection.prepare('DELETE FROM plugin_state WHERE plugin = ? AND key = ?').run([plugin, key]).changes > 0),
      keys: (beginning = '') => all<{ key: string }>(
        'SELECT key FROM plugin_state WHERE plugin = ? AND substr(key, 1, ?) = ? ORDER BY key', [plugin, [...beginning].length, beginning]
      ).map(({ key }) => key)
    }
  }
}

function checked (plugin: string, key: string, value: unknown): string {
  if (typeof key !== 'string' || key === '' || key.length > LONGEST_KEY) {
    throw refused(plugin, `a key must be text of 1 to ${LONGEST_KEY} characters`)
  }
  const text = value === undefined ? undefined : JSON.stringify(value)
  if (text === undefined) throw refused(plugin, `'${key}' must be JSON data, got ${typeof value}; \`delete\` removes a key`)
  const size = Buffer.byteLength(text)
  if (size <= LARGEST_VALUE_BYTES) return text
  throw refused(plugin, `'${key}' takes ${size} bytes, and a value may have ${LARGEST_VALUE_BYTES}; use a file in ctx.stateDir`)
}

function refused (plugin: string, why: string): SvcError {
  return svcError('plugin.state_invalid', `the table of plugin '${plugin}' refused a write: ${why}`, { details: { plugin } })
}

function attempt<T> (work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (isSvcError(error)) throw error
    throw svcError('state.database_failed', `the state database cannot be used: ${messageOf(error)}`, { cause: error })
  }
}
