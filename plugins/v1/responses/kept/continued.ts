import { svcError, type DispatchTarget } from 'svc-gateway/plugin'
import { isObject, malformed, stringIn, type Json } from '../../over-chat/ref.js'
import { inputItems, referenceOf, sentItem } from './items.js'
import type { OwnPart } from './keeper.js'
import type { KeptResponses } from './kept-responses.js'

/** A request that stands on kept items, with these in it. */
export interface Continued {
  /** Null where it stands on nothing that is kept here. */
  readonly body: Buffer | null
  readonly own: OwnPart
  /** What stands in front of its own items. */
  readonly context: readonly Json[]
}

/** Responses that requests go on from. */
export interface Ground extends Pick<KeptResponses, 'get' | 'context' | 'output' | 'assertRoom'> {
  /** The upstream that all thoughts in the context of a response are of. Absent, and null: of others too. */
  thinker? (id: string): string | null
}

/** Whether a request may have to do with kept responses: it is looked at whole only then (`hasToDo`). */
export function mayContinue (body: Buffer): boolean {
  return body.includes('"previous_response_id"') || body.includes('"item_reference"') || body.includes('"background"') ||
    body.includes('"conversation"')
}

/** Whether it has. */
export function hasToDo ({ previous_response_id: previous, conversation, background, input }: Json): boolean {
  return previous != null || conversation != null || background === true || listOf(input).some(item => referenceOf(item) !== null)
}

/**
 * Puts the items of the response that a request goes on from in front of its own, and kept items in place of references to them.
 * Ids that are not kept here are left for an upstream, which may know them, and refused where a slot would serve the request.
 * @param target who would serve it; null where that is not known, or where it does not speak the API
 * @param mostBytes of the request that is made
 * @throws `validation.invalid`, `request.too_large`, `responses.context_lost`, `responses.too_long`
 */
export function continued (asked: Json, store: Ground, target: DispatchTarget | null, mostBytes: number): Continued {
  const { previous_response_id: asks, conversation: inside, ...rest } = asked
  if (asks != null && inside != null) throw malformed('conversation', 'cannot be combined with previous_response_id: omit one of them')
  const key = inside == null ? 'previous_response_id' : 'conversation'
  const from = inside == null ? asks == null ? null : stringIn(asks, key) : conversationId(inside)
  const context = from === null ? undefined : contextOf(store, from, key)
  const isSlots = target !== null && target.slot !== null
  if (from !== null && context === undefined && isSlots) throw unknown(key)
  const takesAll = target === null || target.upstream === null || (from !== null && store.thinker?.(from) === target.upstream)
  const passed = (item: Json): Json[] => sentItem(item, !takesAll)
  let left = mostBytes
  const parts = listOf(asked.input).map((item, i) => {
    const id = referenceOf(item)
    const found = id === null ? undefined : store.output(id)
    if (id !== null && found === undefined && isSlots) throw unknown(`input.${i}.id`)
    if (found === undefined) return { item, isKept: false, sent: [item] }
    // a few bytes may refer to many, and more than once
    left -= found.bytes
    if (left < 0) throw svcError('request.too_large', `the items that the request refers to exceed the limit of ${mostBytes} bytes`)
    return { item: found.item, isKept: true, sent: passed(found.item) }
  })
  const before = context === undefined ? null : from
  const [previous, conversation] = inside == null ? [before, null] : [null, before]
  const own = { isKept: asked.store !== false, input: inputItems(parts.map(({ item }) => item)), previous, conversation }
  if (context === undefined && !parts.some(({ isKept }) => isKept)) return { body: null, own, context: [] }
  const input = [...(context ?? []).flatMap(passed), ...parts.flatMap(({ sent }) => sent)]
  const body = Buffer.from(JSON.stringify({ ...context === undefined ? asked : rest, input }))
  if (body.length > mostBytes) {
    throw svcError('request.too_large', `with the conversation before it the request has ${body.length} bytes, and ${mostBytes} are allowed; start a new conversation`)
  }
  if (before !== null) store.assertRoom(before, body.length)
  return { body, own, context: context ?? [] }
}

function conversationId (named: unknown): string {
  return isObject(named) ? stringIn(named.id, 'conversation.id') : stringIn(named, 'conversation')
}

/** Undefined where nothing of this kind is kept under the id. Throws for a response whose context is that of its conversation. */
function contextOf (store: Ground, id: string, key: 'previous_response_id' | 'conversation'): readonly Json[] | undefined {
  const kept = store.get(id)
  if (kept === undefined || kept.object !== (key === 'conversation' ? 'conversation' : 'response')) return undefined
  const { conversation } = kept
  if (isObject(conversation)) throw malformed(key, `is a response of conversation '${String(conversation.id)}': send that as conversation`)
  return store.context(id)
}

function listOf (input: unknown): readonly unknown[] {
  if (input == null) return []
  return Array.isArray(input) ? input : [{ role: 'user', content: input }]
}

function unknown (at: string): Error {
  return malformed(at, 'is not kept here: it was deleted, has expired, was never kept, or is kept elsewhere; send the whole conversation as `input`')
}
