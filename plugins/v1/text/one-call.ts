import type { DispatchService, Interceptor } from 'svc-gateway/plugin'
import { refusalHeaders, withOneCall } from '../over-chat/ref.js'

interface Asked {
  readonly model: string
  readonly stream: boolean
}

/**
 * Takes over chat requests with tools and `parallel_tool_calls: false` for a slot: engines pass over it where the template of
 * the model knows several calls. Upstreams judge it themselves.
 */
export function oneCallAlone (dispatch: DispatchService): Interceptor {
  return ({ body, request, requestId }, options) => {
    const asked = options.dialect === undefined ? oneCallIn(body) : null
    if (asked === null || dispatch.target(asked.model, 'chat', { body, surface: 'chat' })?.slot == null) return null
    const { headers: origin } = request
    return {
      stream: asked.stream,
      answer: async signal => {
        const answer = await dispatch.call({ ...options, body, requestId, origin, signal })
        const { status, headers } = answer
        return { status, headers: refusalHeaders(headers), body: status === 200 ? withOneCall(answer).body : answer.body }
      }
    }
  }
}

const WORD = '"parallel_tool_calls"'
const COLON = 0x3a
const SPACE = 0x20

/** Whether `parallel_tool_calls` stands before a `false`, at any depth: what says true wants nothing, and is not parsed. Pure. */
export function saysOneCall (body: Buffer): boolean {
  for (let at = body.indexOf(WORD); at !== -1; at = body.indexOf(WORD, at)) {
    at += WORD.length
    while (body[at]! <= SPACE || body[at] === COLON) at++
    if (body.toString('latin1', at, at + 5) === 'false') return true
  }
  return false
}

/** Null for a request that wants none, or that others take over. Pure. */
function oneCallIn (body: Buffer): Asked | null {
  if (!saysOneCall(body)) return null
  try {
    const asked = JSON.parse(body.toString('utf8')) as Readonly<Record<string, unknown>>
    const { model, stream, parallel_tool_calls: parallel, omni, memory } = asked
    if (parallel !== false || [omni, memory].some(flag => flag != null && flag !== false) || typeof model !== 'string') return null
    return { model, stream: stream === true }
  } catch {
    // what is wrong with it is said by the dispatcher
    return null
  }
}
