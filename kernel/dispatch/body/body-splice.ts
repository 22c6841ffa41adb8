import type { BodyEdits } from '../../contract/index.js'
import { blockBeside } from './body-blocks.js'
import { BodyView } from './body-view.js'

interface Patch {
  readonly start: number
  readonly end: number
  readonly text: string | Buffer
}

/**
 * A body with some members set, added or dropped; every other byte stays as it is. Every occurrence of a
 * duplicated name is edited, because parsers differ in which one they take. Returns the same buffer when
 * nothing changes.
 */
export function spliceBody (view: BodyView, edits: BodyEdits): Buffer {
  return needsEdit(view, edits) ? edit(view, edits) : view.body
}

/** A body with another value for a member that it has exactly once: what nearly every request to an upstream needs. */
export function withValue (view: BodyView, key: string, value: string): Buffer {
  const { body } = view
  const { valueStart, valueEnd } = view.member(key)!
  const text = JSON.stringify(value)
  const bytes = Buffer.byteLength(text)
  const out = room(body, body.length - (valueEnd - valueStart) + bytes)
  body.copy(out, 0, 0, valueStart)
  out.write(text, valueStart)
  body.copy(out, valueStart + bytes, valueEnd)
  return out
}

function needsEdit ({ members }: BodyView, { set, add, drop }: BodyEdits): boolean {
  if (set !== undefined || add !== undefined) return true
  if (drop !== undefined) {
    for (const { key } of members) if (drop.includes(key)) return true
  }
  return false
}

function edit (view: BodyView, edits: BodyEdits): Buffer {
  const { body, members } = view
  const drop = new Set(edits.drop)
  const values = newValues(view, edits)
  const missing = new Map(values)
  const patches: Patch[] = []
  const lastKept = members.findLastIndex(({ key }) => !drop.has(key))
  members.forEach((member, i) => {
    const text = values.get(member.key)
    if (text !== undefined) {
      missing.delete(member.key)
      if (!Buffer.from(text).equals(body.subarray(member.valueStart, member.valueEnd))) {
        patches.push({ start: member.valueStart, end: member.valueEnd, text })
      }
    } else if (drop.has(member.key)) {
      patches.push({ ...span(view, i, lastKept), text: '' })
    }
  })
  if (missing.size > 0) {
    const added = [...missing].map(([key, text]) => `${JSON.stringify(key)}:${text.toString()}`).join(',')
    const rest = members.some(member => !drop.has(member.key))
    const front = members[0]?.start ?? body.indexOf('}', 0, 'latin1')
    patches.unshift({ start: front, end: front, text: rest ? `${added},` : added })
  }
  return patches.length === 0 ? body : applyPatches(body, patches)
}

/** JSON text of the members that are set, or added where the body leaves them open. */
function newValues (view: BodyView, { set = {}, add = {} }: BodyEdits): Map<string, string | Buffer> {
  const values = new Map<string, string | Buffer>()
  for (const [key, value] of Object.entries(add)) {
    const text = value === undefined ? null : addition(view, key, value)
    if (text !== null) values.set(key, text)
  }
  for (const [key, value] of Object.entries(set)) {
    if (value !== undefined) values.set(key, JSON.stringify(value))
  }
  return values
}

/** What stands in a member's place after an addition; null when the body has something that wins. */
function addition (view: BodyView, key: string, value: unknown): string | Buffer | null {
  const member = view.member(key)
  if (member === undefined || !view.has(key)) return JSON.stringify(value)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null
  const inner = BodyView.of(view.body.subarray(member.valueStart, member.valueEnd))
  if (typeof inner === 'string') return null
  const merged = spliceBody(inner, { add: value as Record<string, unknown> })
  return merged === inner.body ? null : merged
}

/**
 * The bytes of a dropped member with one comma: the one behind it, or, when only dropped members follow, the
 * one before it.
 */
function span ({ members }: BodyView, i: number, lastKept: number): { start: number, end: number } {
  const member = members[i]!
  const next = members[i + 1]
  if (next !== undefined && i < lastKept) return { start: member.start, end: next.start }
  const previous = members[i - 1]
  return { start: previous === undefined ? member.start : previous.valueEnd, end: member.valueEnd }
}

function applyPatches (body: Buffer, patches: readonly Patch[]): Buffer {
  const parts: Buffer[] = []
  let pos = 0
  for (const patch of patches) {
    if (patch.start > pos) parts.push(body.subarray(pos, patch.start))
    if (patch.text.length > 0) parts.push(Buffer.from(patch.text))
    pos = Math.max(pos, patch.end)
  }
  parts.push(body.subarray(pos))
  const out = room(body, parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) at += part.copy(out, at)
  return out
}

/** For what is made of a body. */
function room (body: Buffer, bytes: number): Buffer {
  return blockBeside(body, bytes) ?? Buffer.allocUnsafe(bytes)
}
