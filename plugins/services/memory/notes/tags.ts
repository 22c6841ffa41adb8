import { askEngine, bankPath, rowsIn, valueOf } from '../engine-call.js'
import type { MemoryEngine } from '../engine.js'
import { ownTags, STAMPS, type Note } from './note.js'

export const tagsMatches = ['any', 'all', 'any_strict', 'all_strict', 'exact'] as const
export type TagsMatch = typeof tagsMatches[number]

/**
 * Tags that memories are asked for by. The modes are the engine's, and mean the tags of users alone: a memory without tags is one
 * that has no more than the gateway's stamps.
 */
export interface AskedTags {
  readonly tags: readonly string[]
  readonly match: TagsMatch
}

/** What a question says of tags to an engine. */
export interface EngineTags {
  readonly tags?: readonly string[]
  readonly tags_match?: TagsMatch
  /** Of the embedded engine: tags that begin so are none, but where they are asked for. */
  readonly tags_aside?: readonly string[]
  /** All of them must hold. */
  readonly tag_groups?: readonly object[]
}

/** Whether a memory is one of those that are asked for. Pure. */
export function isAskedFor ({ tags }: Pick<Note, 'tags'>, { tags: wanted, match }: AskedTags): boolean {
  const has = new Set(tags)
  const own = ownTags(tags).length
  if (match === 'exact') return own === ownTags(wanted).length && wanted.every(tag => has.has(tag))
  if (wanted.length === 0) return true
  const isFound = isAny(match) ? wanted.some(tag => has.has(tag)) : wanted.every(tag => has.has(tag))
  return isFound || (own === 0 && takesUntagged({ tags: wanted, match }))
}

/**
 * The same as an engine takes it, before it chooses what an answer has room for. A Hindsight server counts each tag of a memory,
 * so for what is about those without other tags it is told which tags the bank has.
 */
export async function engineTags (
  engine: MemoryEngine, bank: string, asked: AskedTags, signal: AbortSignal
): Promise<EngineTags> {
  const { tags, match } = asked
  const isExact = match === 'exact'
  if (!isExact && tags.length === 0) return {}
  if (!isExact && !takesUntagged(asked)) return { tags, tags_match: isAny(match) ? 'any_strict' : 'all_strict' }
  if (engine.name === 'embedded') return { tags, tags_match: match, tags_aside: STAMPS }
  const others = (await tagsOf(engine, bank, signal))?.filter(tag => !isExact || !tags.includes(tag))
  const found = { tags, match: isAny(match) ? 'any_strict' : 'all_strict' }
  if (isExact) return groups([...tags.length === 0 ? [] : [found], ...others === undefined ? [] : without(others)])
  // of all the rest the caller sorts out what is not asked for
  return others === undefined || others.length === 0 ? {} : groups([{ or: [found, ...without(others)] }])
}

/** The same, where these must hold as well. A Hindsight server takes tags or groups of them, and refuses both at once. Pure. */
export function alsoHolding (asked: EngineTags, more: readonly object[]): EngineTags {
  const { tags, tags_match: match, tag_groups: told = [], tags_aside: aside } = asked
  if (tags === undefined || aside !== undefined) return { ...asked, tag_groups: [...told, ...more] }
  return { tag_groups: [{ tags, match }, ...told, ...more] }
}

function isAny (match: TagsMatch): boolean {
  return match === 'any' || match === 'any_strict'
}

/** By a stamp, those that have none are not meant. */
function takesUntagged ({ tags, match }: AskedTags): boolean {
  return (match === 'any' || match === 'all') && ownTags(tags).length > 0
}

function groups (all: readonly object[]): EngineTags {
  return all.length === 0 ? {} : { tag_groups: all }
}

function without (tags: readonly string[]): readonly object[] {
  return tags.length === 0 ? [] : [{ not: { tags, match: 'any_strict' } }]
}

/** One page of the list: a server is not told more at each question. */
const MOST_TAGS = 1000

/** The tags of users in a bank; undefined where there are too many to tell. */
async function tagsOf (engine: MemoryEngine, bank: string, signal: AbortSignal): Promise<readonly string[] | undefined> {
  const path = bankPath(bank, 'tags')
  const reply = await askEngine(engine, { method: 'GET', path, query: `limit=${MOST_TAGS}`, signal })
  // a bank is made by its first memory
  if (reply.status === 404) return []
  const rows = rowsIn(valueOf(reply, path), 'items', path)
  // a full page may not be all
  return rows.length < MOST_TAGS ? ownTags(rows.map(({ tag }) => tag).filter(tag => typeof tag === 'string')) : undefined
}
