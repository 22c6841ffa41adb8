import { randomUUID } from 'node:crypto'
import { errorType, translated, type AdaptedAnswer, type CallAnswer, type Clock, type DispatchService, type Otherwise } from 'svc-gateway/plugin'
import { readAll } from '../omni/ref.js'
import { bodyObject, isObject, refusalHeaders, textOr, warningHeader } from '../over-chat/ref.js'
import { ChatChunks, completionOf, type ChunkHead } from './chat-chunks.js'
import { messagesRequest, type MessagesRequest } from './messages-request.js'

const LONGEST_ANSWER_BYTES = 64 * 1024 * 1024
const SSE = 'text/event-stream'
const JSON_TYPE = 'application/json'

/** Chat completions for upstreams that speak the Messages API alone. */
export function chatOverMessages (dispatch: DispatchService, clock: Pick<Clock, 'now'>): Otherwise {
  return {
    surface: 'messages',
    authStyles: ['anthropic'],
    take ({ body, requestId, headers: origin }) {
      const asked = bodyObject(body)
      const said = messagesRequest(asked)
      return {
        stream: said.stream,
        answer: async signal => {
          const answer = await dispatch.call({
            surface: 'messages',
            path: '/messages',
            body: Buffer.from(JSON.stringify(said.body)),
            requestId,
            origin,
            signal
          })
          const id = `chatcmpl-${randomUUID().replaceAll('-', '')}`
          return await answered(answer, said, { id, created: Math.floor(clock.now() / 1000), model: textOr(asked.model, '') })
        }
      }
    }
  }
}

async function answered (answer: CallAnswer, said: MessagesRequest, head: ChunkHead): Promise<AdaptedAnswer> {
  if (answer.status < 200 || answer.status > 299) return await refused(answer)
  const warning = warningHeader(said.warnings)
  const isStreamed = answer.headers['content-type']?.startsWith(SSE) === true
  if (said.stream && isStreamed) {
    return { status: 200, headers: { 'content-type': SSE, ...warning }, body: translated(answer.body, new ChatChunks(head, said.tellsUsage)) }
  }
  const text = (await readAll(answer, LONGEST_ANSWER_BYTES)).toString('utf8')
  return { status: 200, headers: { 'content-type': JSON_TYPE, ...warning }, body: Buffer.from(JSON.stringify(completionOf(text, head))) }
}

/** A refusal in the shape of chat completions; what is none of the API's passes as it is. */
async function refused (answer: CallAnswer): Promise<AdaptedAnswer> {
  const { status } = answer
  const bytes = await readAll(answer, LONGEST_ANSWER_BYTES)
  const message = messageIn(bytes.toString('utf8'))
  const headers = { 'content-type': JSON_TYPE, ...refusalHeaders(answer.headers) }
  if (message === null) return { status, headers, body: bytes }
  const error = { message, type: errorType(status), param: null, code: null }
  return { status, headers: { ...headers, 'content-type': JSON_TYPE }, body: Buffer.from(JSON.stringify({ error })) }
}

function messageIn (text: string): string | null {
  try {
    const body = JSON.parse(text) as unknown
    return isObject(body) && body.type === 'error' && isObject(body.error) && typeof body.error.message === 'string' ? body.error.message : null
  } catch {
    return null
  }
}
