import { StreamedCalls } from './streamed-calls.js'
import type { StreamEvent } from './sse-events.js'
import type { ToolCall } from './completion.js'

/** What all chunks of one answer have in common. */
export interface ChunkHead {
  readonly id: string
  readonly object: 'chat.completion.chunk'
  readonly created: number
  readonly model: string
}

type Chunk = Readonly<Record<string, unknown>>

export interface KeptEvent {
  readonly bytes: Buffer
  readonly chunk: Chunk
}

export interface RoundEnd {
  /** The engine told a failure inside its stream; the client has it already. */
  readonly failed: boolean
  readonly head: ChunkHead
  readonly calls: readonly ToolCall[]
  /** The assistant's message without its calls, for the next round. */
  readonly message: Readonly<Record<string, unknown>>
  /** Whether the client has seen text of this round. */
  readonly hasText: boolean
  /** Events that belong to the end of an answer, kept back until it is known to be the last: reason, usage. */
  readonly kept: readonly KeptEvent[]
  readonly done: boolean
}

interface Choice {
  readonly delta?: Chunk | null
  readonly finish_reason?: unknown
}

/**
 * Reads one streamed answer of the caller's model. Gives on what a client may see at once, text and reasoning, and
 * keeps back calls of tools, the reason of the end and the usage, which mean something else when another round follows.
 * The first round's bytes stay as they are; later ones get its head, so that all is one answer.
 * @param head of the first round; null in that round
 */
export async function* readRound (
  events: AsyncIterable<StreamEvent>, round: number, head: ChunkHead | null
): AsyncGenerator<Buffer, RoundEnd, undefined> {
  const calls = new StreamedCalls()
  const kept: KeptEvent[] = []
  const text = { content: '', reasoning_content: '' }
  let own: ChunkHead | null = head
  let done = false
  let failed = false
  for await (const { raw, data } of events) {
    if (data?.trim() === '[DONE]') {
      done = true
      continue
    }
    const chunk = data === null ? null : parsedChunk(data)
    if (chunk === null || chunk.error !== undefined) {
      failed ||= chunk !== null
      yield raw
      continue
    }
    own ??= headOf(chunk)
    const choice = Array.isArray(chunk.choices) ? chunk.choices[0] as Choice | undefined : undefined
    const ours = { ...chunk, ...own }
    const { tool_calls: pieces, ...shown } = choice?.delta ?? {}
    if (Array.isArray(pieces)) calls.add(pieces)
    const said = (['content', 'reasoning_content'] as const).filter(key => append(text, key, shown))
    // LocalAI has an empty reason in every chunk but the last
    if (choice === undefined || (choice.finish_reason != null && choice.finish_reason !== '')) {
      kept.push({ bytes: head === null ? raw : chunkBytes(ours), chunk: ours })
    } else if (head === null && pieces === undefined) yield raw
    else if (said.length > 0) yield chunkBytes({ ...ours, choices: [{ ...choice, delta: shown }] })
  }
  const { content, reasoning_content: reasoning } = text
  return {
    failed,
    head: own ?? { id: 'chatcmpl-omni', object: 'chat.completion.chunk', created: 0, model: '' },
    calls: calls.whole(round),
    message: {
      role: 'assistant',
      content: content === '' ? null : content,
      ...reasoning === '' ? {} : { reasoning_content: reasoning }
    },
    hasText: content !== '',
    kept,
    done
  }
}

export function chunkBytes (chunk: object): Buffer {
  return Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`)
}

type Text = Record<'content' | 'reasoning_content', string>

function append (text: Text, key: keyof Text, delta: Chunk): boolean {
  const piece = delta[key]
  if (typeof piece !== 'string' || piece === '') return false
  text[key] += piece
  return true
}

function headOf ({ id, created, model }: Chunk): ChunkHead {
  return {
    id: typeof id === 'string' ? id : 'chatcmpl-omni',
    object: 'chat.completion.chunk',
    created: typeof created === 'number' ? created : 0,
    model: typeof model === 'string' ? model : ''
  }
}

function parsedChunk (data: string): Chunk | null {
  try {
    const parsed = JSON.parse(data) as unknown
    return typeof parsed === 'object' && parsed !== null ? parsed as Chunk : null
  } catch {
    return null
  }
}
