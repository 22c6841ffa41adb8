import type { Cell, Store } from '../store/store.js'
import { unprocessable, type Reading, type Shape } from '../wire/shape.js'
import { listOf, object, oneOf, optional, required, text } from '../wire/shape.js'

export const tagModes = ['any', 'all', 'any_strict', 'all_strict', 'exact'] as const
export type TagMode = typeof tagModes[number]

/** A condition on rows of `memories`, whose alias is `m`. */
export interface Condition {
  readonly sql: string
  readonly values: readonly Cell[]
}

export type TagGroup =
  | { readonly tags: readonly string[], readonly match: TagMode, readonly resolve: 'exact' | 'fuzzy' }
  | { readonly and: readonly TagGroup[] }
  | { readonly or: readonly TagGroup[] }
  | { readonly not: TagGroup }

const leaf = object({
  tags: required(listOf(text)), match: optional(oneOf(...tagModes), 'any_strict'), resolve: optional(oneOf('exact', 'fuzzy'), 'exact')
})
const DEEPEST = 8
/** An expression of more parts is none that SQLite takes. */
const MOST_PARTS = 500
/** Each is compared with each tag of a memory. */
const MOST_ASIDE = 20

/** A tag group of the wire. */
export const tagGroup: Shape<TagGroup> = (value, at, reading) => read(value, at, reading, 1)

function read (value: unknown, at: readonly (string | number)[], reading: Reading, depth: number): TagGroup {
  const tooDeep = depth > DEEPEST
  const given = (typeof value === 'object' && value !== null && !tooDeep ? value : {}) as Readonly<Record<string, unknown>>
  const inner: Shape<TagGroup> = (item, place, into) => read(item, place, into, depth + 1)
  if (tooDeep) reading.problems.push({ type: 'value_error', loc: at, msg: `Value error, tag groups nest at most ${DEEPEST} deep`, input: null })
  if ('and' in given) return object({ and: required(listOf(inner)) })(given, at, reading)
  if ('or' in given) return object({ or: required(listOf(inner)) })(given, at, reading)
  if ('not' in given) return object({ not: required(inner) })(given, at, reading)
  return tooDeep ? { and: [] } : leaf(value, at, reading)
}

/** The `tag_groups` of a query, which are JSON. Throws the wire's 422. */
export function readTagGroups (json: string | null, ignored: Set<string>): readonly TagGroup[] | null {
  if (json === null || json === '') return null
  const reading: Reading = { problems: [], ignored }
  let value: unknown
  try {
    value = JSON.parse(json)
  } catch {
    throw unprocessable([{ type: 'json_invalid', loc: ['query', 'tag_groups'], msg: 'JSON decode error', input: json }])
  }
  const groups = listOf(tagGroup)(value, ['query', 'tag_groups'], reading)
  if (reading.problems.length > 0) throw unprocessable(reading.problems)
  return groups
}

export interface TagReading {
  /** What it is of is few: their tags are looked at, not all memories with such tags. */
  readonly ofFew?: boolean
  /** Tags that begin so are none to `any`, `all` and `exact`, but where they are asked for. */
  readonly aside?: readonly string[]
}

/** Memories with such tags; `any` and `all` mean those without tags too. Null if it filters nothing. Throws the wire's 422. */
export function tagCondition (
  bank: number, tags: readonly string[] | null, mode: TagMode, { ofFew = false, aside = [] }: TagReading = {}
): Condition | null {
  if (tags === null || (tags.length === 0 && mode !== 'exact')) return null
  const wanted = [...new Set(tags)]
  const isAny = mode === 'any' || mode === 'any_strict'
  if (aside.length > MOST_ASIDE) throw tooMany('tags_aside', `at most ${MOST_ASIDE}`, aside.length)
  if (!isAny && wanted.length > MOST_PARTS) throw tooMany('tags', `at most ${MOST_PARTS} tags that must all be there`, wanted.length)
  if (mode === 'exact') {
    const each = wanted.map(() => 'm.seq IN (SELECT memory FROM memory_tags WHERE bank = ? AND tag = ?)')
    const counted = countedTags(aside)
    const count = wanted.filter(tag => !aside.some(start => tag.startsWith(start))).length
    return { sql: [...each, `${counted.sql} = ${count}`].join(' AND '), values: [...wanted.flatMap(tag => [bank, tag]), ...counted.values] }
  }
  const any = ofFew
    ? { sql: 'EXISTS (SELECT 1 FROM memory_tags t WHERE t.memory = m.seq AND t.tag IN (SELECT value FROM json_each(?)))', values: [JSON.stringify(wanted)] }
    : { sql: 'm.seq IN (SELECT memory FROM memory_tags WHERE bank = ? AND tag IN (SELECT value FROM json_each(?)))', values: [bank, JSON.stringify(wanted)] }
  const strict = isAny
    ? any
    : { sql: wanted.map(() => 'm.seq IN (SELECT memory FROM memory_tags WHERE bank = ? AND tag = ?)').join(' AND '), values: wanted.flatMap(tag => [bank, tag]) }
  if (mode !== 'any' && mode !== 'all') return strict
  const counted = countedTags(aside)
  return { sql: `(m.tags = '[]' OR (${strict.sql}) OR ${counted.sql} = 0)`, values: [...strict.values, ...counted.values] }
}

/** How many tags a memory has beside those that begin in such a way. */
function countedTags (aside: readonly string[]): Condition {
  if (aside.length === 0) return { sql: 'json_array_length(m.tags)', values: [] }
  const begins = aside.map(() => 'substr(value, 1, length(?)) = ?').join(' OR ')
  return { sql: `(SELECT count(*) FROM json_each(m.tags) WHERE NOT (${begins}))`, values: aside.flatMap(start => [start, start]) }
}

/** All of the groups must hold. Null if there are none. Throws the wire's 422. */
export function groupsCondition (store: Store, bank: number, groups: readonly TagGroup[] | null): Condition | null {
  if (groups === null || groups.length === 0) return null
  const parts = partsOf(groups)
  if (parts > MOST_PARTS) throw tooMany('tag_groups', `at most ${MOST_PARTS} groups, and tags in them that must all be there`, parts)
  return joined(groups.map(group => condition(store, bank, group)), 'AND')
}

function partsOf (groups: readonly TagGroup[]): number {
  return groups.reduce((sum, group) => {
    if ('tags' in group) return sum + (group.match.startsWith('any') ? 1 : 1 + group.tags.length)
    return sum + 1 + partsOf('and' in group ? group.and : 'or' in group ? group.or : [group.not])
  }, 0)
}

function tooMany (name: string, most: string, count: number): Error {
  return unprocessable([{ type: 'value_error', loc: ['body', name], msg: `Value error, ${most}`, input: count }])
}

function condition (store: Store, bank: number, group: TagGroup): Condition {
  if ('and' in group) return joined(group.and.map(each => condition(store, bank, each)), 'AND')
  if ('or' in group) return joined(group.or.map(each => condition(store, bank, each)), 'OR')
  if ('not' in group) {
    const { sql, values } = condition(store, bank, group.not)
    return { sql: `NOT (${sql})`, values }
  }
  const tags = group.resolve === 'fuzzy' ? similarTags(store, bank, group.tags) : group.tags
  // nothing is like what was asked for
  if (tags.length === 0 && group.tags.length > 0) return { sql: '0', values: [] }
  return tagCondition(bank, tags, group.match) ?? { sql: '1', values: [] }
}

/** Of none: `AND` holds, `OR` does not. */
export function joined (conditions: readonly Condition[], word: 'AND' | 'OR'): Condition {
  if (conditions.length === 0) return { sql: word === 'AND' ? '1' : '0', values: [] }
  return { sql: `(${conditions.map(({ sql }) => sql).join(` ${word} `)})`, values: conditions.flatMap(({ values }) => values) }
}

/** Tags of the bank that differ in capitals and signs alone, or hold the whole word. */
function similarTags (store: Store, bank: number, tags: readonly string[]): readonly string[] {
  const plain = (tag: string): string => tag.normalize('NFKD').toLowerCase().replaceAll(/[^\p{L}\p{N}]/gu, '')
  const wanted = tags.map(plain).filter(tag => tag !== '')
  return store.all<{ tag: string }>('SELECT DISTINCT tag FROM memory_tags WHERE bank = ?', [bank]).map(({ tag }) => tag)
    .filter(tag => wanted.some(each => plain(tag) === each || (each.length > 2 && plain(tag).includes(each))))
}
