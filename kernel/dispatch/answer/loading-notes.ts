import type { SlotStatus } from '../../contract/index.js'
import { isLoading } from '../../slots/schedule/slot-machine.js'

export interface LoadingNotesInput {
  /** Of the slot that is waited for, one after every change. */
  readonly statuses: (signal: AbortSignal) => AsyncIterable<SlotStatus>
  /** The model as the client named it. */
  readonly model: string
  readonly requestId: string
  /** Epoch milliseconds. */
  readonly now: () => number
  /** Writes an event ahead of the answer; false when that has begun. */
  readonly write: (event: Buffer) => boolean
}

/**
 * Tells a streaming client how far the load of its slot is, as reasoning of the answer to come, until the function that it
 * gives is called or the answer begins.
 */
export function tellLoading (input: LoadingNotesInput): () => void {
  const ended = new AbortController()
  void follow(input, ended.signal)
  return () => ended.abort()
}

async function follow ({ statuses, write, ...answer }: LoadingNotesInput, signal: AbortSignal): Promise<void> {
  let said: string | null = null
  try {
    for await (const status of statuses(signal)) {
      if (signal.aborted) return
      const text = isLoading(status.state) ? lineOf(status) : null
      if (text === null || text === said) continue
      if (!write(deltaOf(answer, text, said === null))) return
      said = text
    }
  } catch {
    // a slot that is deleted ends the request itself, which tells its client
  }
}

function lineOf ({ name, state, message, progress }: SlotStatus): string {
  const share = progress === null || message.includes('%') ? '' : ` (${Math.floor(progress * 100)} %)`
  return `${name}: ${message === '' ? state : message}${share}\n`
}

function deltaOf ({ model, requestId, now }: Pick<LoadingNotesInput, 'model' | 'requestId' | 'now'>, text: string, first: boolean): Buffer {
  const delta = { ...first ? { role: 'assistant' } : {}, reasoning_content: text }
  return Buffer.from(`data: ${JSON.stringify({
    id: `chatcmpl-${requestId}`,
    object: 'chat.completion.chunk',
    created: Math.floor(now() / 1000),
    model,
    choices: [{ index: 0, delta, finish_reason: null }]
  })}\n\n`)
}
