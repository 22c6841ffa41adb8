import { isSvcError, messageOf, svcError, type CallAnswer } from 'svc-gateway/plugin'
import { readAll, streamEvents } from '../../v1/omni/ref.js'
import type { ChatFrame } from './frames.js'

/** Calls of one answer; the model is told that the others were not run. */
const MOST_CALLS = 64
const MOST_TEXT = 1024 * 1024
const MOST_REFUSAL_BYTES = 64 * 1024
/** Arguments of one call, in characters: what is longer is cut off, and refused as too long. */
export const MOST_ARGUMENTS = 256 * 1024

export interface ModelCall {
  readonly id: string
  readonly name: string
  /** As the model wrote it: JSON, as a rule. */
  readonly args: string
}

export interface ModelSaid {
  readonly text: string
  readonly calls: readonly ModelCall[]
}

type Pieces = Map<number, { id: string, name: string, args: string }>

interface Delta {
  readonly content?: unknown
  readonly reasoning_content?: unknown
  readonly tool_calls?: unknown
}

interface Chunk {
  readonly choices?: ReadonlyArray<{ readonly delta?: Delta | null }>
  readonly error?: { readonly message?: unknown } | null
}

interface CallPiece {
  readonly index?: unknown
  readonly id?: unknown
  readonly function?: { readonly name?: unknown, readonly arguments?: unknown } | null
}

/** One streamed answer of the model: what it says goes on at once, what it calls comes together. Throws what went wrong. */
export async function* modelRound (answer: CallAnswer, round: number): AsyncGenerator<ChatFrame, ModelSaid, undefined> {
  if (answer.status > 299) throw new Error(`the model answered ${answer.status}: ${refusalText(await readAll(answer, MOST_REFUSAL_BYTES))}`)
  const pieces: Pieces = new Map()
  let text = ''
  let size = 0
  for await (const { data } of streamEvents(answer.body)) {
    if (data === null || data.trim() === '[DONE]') continue
    size += data.length
    if (size > 16 * MOST_TEXT) throw svcError('dispatch.upstream_failed', 'the answer of the model is too long')
    const delta = deltaOf(data)
    if (typeof delta.reasoning_content === 'string' && delta.reasoning_content !== '') yield { type: 'thinking', text: delta.reasoning_content }
    if (typeof delta.content === 'string' && delta.content !== '') {
      text = (text + delta.content).slice(0, MOST_TEXT)
      yield { type: 'token', text: delta.content }
    }
    if (Array.isArray(delta.tool_calls)) delta.tool_calls.forEach((piece, i) => join(pieces, (piece ?? {}) as CallPiece, i))
  }
  const calls = [...pieces].sort(([a], [b]) => a - b).map(([, call], i) => ({ ...call, id: call.id === '' ? `call_${round}_${i}` : call.id }))
  return { text, calls: calls.slice(0, MOST_CALLS) }
}

function join (pieces: Pieces, { index, id, function: part }: CallPiece, i: number): void {
  const at = typeof index === 'number' ? index : i
  const call = pieces.get(at) ?? { id: '', name: '', args: '' }
  pieces.set(at, call)
  if (typeof id === 'string' && call.id === '') call.id = id
  if (typeof part?.name === 'string' && call.name === '') call.name = part.name
  if (typeof part?.arguments === 'string') call.args = (call.args + part.arguments).slice(0, MOST_ARGUMENTS + 1)
}

/** Throws a failure that the engine tells inside of its stream. */
function deltaOf (data: string): Delta {
  let chunk: Chunk | null
  try {
    chunk = JSON.parse(data) as Chunk | null
  } catch {
    return {}
  }
  if (chunk?.error !== undefined && chunk.error !== null) throw new Error(typeof chunk.error.message === 'string' ? chunk.error.message : 'the model failed')
  return chunk?.choices?.[0]?.delta ?? {}
}

function refusalText (bytes: Buffer): string {
  const text = bytes.toString('utf8')
  try {
    const { error } = JSON.parse(text) as { readonly error?: { readonly message?: unknown } }
    if (typeof error?.message === 'string') return error.message.slice(0, 500)
  } catch {
    // not JSON: told as it is
  }
  return text.slice(0, 500)
}

/** For a client: what it did not ask for stays in the log. */
export function failureText (error: unknown): string {
  return isSvcError(error) && error.status >= 500 && error.code === 'system.internal' ? 'internal error' : messageOf(error)
}
