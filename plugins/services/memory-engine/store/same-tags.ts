import type { Condition } from '../memories/tag-filter.js'

/** Of very many rows of one text the newest are looked at: one that is kept beside them is found the next time. */
export const MOST_ALIKE = 200

/** Of more tags there are too many orders to look for each. */
const MOST_ORDERED = 4

const SORTED = (tags: string): string => `(SELECT json_group_array(value) FROM (SELECT value FROM json_each(${tags}) ORDER BY value))`

/**
 * Conditions of which a row holds one if its `column` has just these tags. Rows keep tags in the order in which they came, so
 * that each order is looked for, by the indexes that begin with a text's hash and go on with the tags. Pure.
 */
export function sameTags (column: string, tags: readonly string[]): readonly Condition[] {
  if (tags.length > MOST_ORDERED) return [{ sql: `${SORTED(column)} = ${SORTED('?')}`, values: [JSON.stringify(tags)] }]
  return ordersOf(tags).map(order => {
    const list = JSON.stringify(order)
    return { sql: `substr(${column}, 1, 100) = substr(?, 1, 100) AND ${column} = ?`, values: [list, list] }
  })
}

function ordersOf (tags: readonly string[]): ReadonlyArray<readonly string[]> {
  if (tags.length < 2) return [tags]
  return tags.flatMap((first, i) => ordersOf(tags.toSpliced(i, 1)).map(rest => [first, ...rest]))
}
