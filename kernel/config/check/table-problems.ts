import { settingsOf, type ConfigSnapshot, type SettingsTable, type SvcConfig } from '../../contract/index.js'
import type { Problem } from './shape-check.js'
import { isTable, type Table } from '../toml/toml-file.js'

/** What plugins find wrong with a change of their tables of svc.toml; those that it leaves alone are not asked. Pure. */
export function tableProblems (
  tables: readonly SettingsTable[], patch: Table, next: SvcConfig, previous: SvcConfig | null, slots: ConfigSnapshot['slots']
): readonly Problem[] {
  return tables.flatMap(table => {
    const asked = Object.hasOwn(patch, table.name) ? patch[table.name] : undefined
    if (!isTable(asked)) return []
    const before = previous === null ? null : settingsOf(previous, table)
    const found = table.problems?.({ next: settingsOf(next, table), previous: before, patch: asked, slots }) ?? []
    return found.map(({ path, message }) => ({ path: [table.name, ...path], message, unknown: false }))
  })
}
