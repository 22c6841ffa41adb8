import { errorText, INVALID_REQUEST, isMessage, isResponse, type RpcMessage, type RpcRequest } from './rpc.js'

export const MOST_IN_BATCH = 100
/** Of all answers together: a list that is asked for a hundred times is a hundred times as long. */
const MOST_CHARACTERS = 1024 * 1024
/** Answers that are always told. */
const SHORT = 1024
const AT_ONCE = 8

export interface BatchDeps {
  /** The answer as JSON. Never rejects. */
  readonly answer: (message: RpcRequest) => Promise<string>
  readonly note: (message: RpcMessage) => void
  /** The client has left: what has not begun does not begin. */
  readonly signal: AbortSignal
}

/**
 * The answers of a batch, in its order, a few at a time. What has no room any more is not run, and told so; a call that has
 * run is told, however long its answer is.
 */
export async function answerBatch (
  messages: readonly unknown[], { answer, note, signal }: BatchDeps
): Promise<readonly string[]> {
  const answers: Array<string | null> = messages.map(() => null)
  let room = MOST_CHARACTERS
  let next = 0
  const one = async (message: unknown): Promise<string | null> => {
    if (isResponse(message)) return null
    if (!isMessage(message)) return errorText(null, INVALID_REQUEST, 'not a JSON-RPC 2.0 message')
    const { id, method } = message
    if (id === undefined) {
      note(message)
      return null
    }
    if (room <= 0) return noRoom(id)
    const text = await answer({ ...message, id })
    if (text.length > Math.max(room, SHORT) && method !== 'tools/call') return noRoom(id)
    room -= text.length
    return text
  }
  const work = async (): Promise<void> => {
    while (next < messages.length && !signal.aborted) {
      const at = next++
      answers[at] = await one(messages[at])
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  return answers.filter(text => text !== null)
}

function noRoom (id: string | number): string {
  return errorText(id, INVALID_REQUEST, 'the answers of this batch are too long together; request this one separately')
}
