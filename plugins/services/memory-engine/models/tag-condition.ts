import type { Condition, TagMode } from '../memories/tag-filter.js'

/**
 * As `tagsMatch`, of a column that has tags as JSON; without such a condition where every row fits. Pure.
 * @param column such as `m.tags`
 */
export function tagsCondition (column: string, wanted: readonly string[] | null, mode: TagMode): Condition {
  if (wanted === null || (wanted.length === 0 && mode !== 'exact')) return { sql: 'true', values: [] }
  const json = JSON.stringify(wanted)
  const any = `EXISTS (SELECT 1 FROM json_each(${column}) own WHERE own.value IN (SELECT value FROM json_each(?)))`
  const all = `NOT EXISTS (SELECT 1 FROM json_each(?) each WHERE each.value NOT IN (SELECT value FROM json_each(${column})))`
  const noOther = `NOT EXISTS (SELECT 1 FROM json_each(${column}) own WHERE own.value NOT IN (SELECT value FROM json_each(?)))`
  const none = `${column} = '[]'`
  switch (mode) {
    case 'any': return { sql: `(${none} OR ${any})`, values: [json] }
    case 'all': return { sql: `(${none} OR ${all})`, values: [json] }
    case 'any_strict': return { sql: any, values: [json] }
    case 'all_strict': return { sql: all, values: [json] }
    case 'exact': return { sql: `(${all} AND ${noOther})`, values: [json, json] }
  }
}
