import { isSvcError, messageOf } from 'svc-gateway/plugin'
import { z } from 'zod'
import type { AgentLink } from './agent-link.js'

const id = z.union([z.string().max(128), z.number()]).nullable()
const session = z.string().min(1).max(128)

const frameSchema = z.looseObject({ id: id.optional(), method: z.string().max(64), params: z.unknown() })

const paramsSchemas = {
  'prompt.submit': z.object({ session_id: session, text: z.string().min(1) }),
  'approval.respond': z.object({ id: z.string().max(128), choice: z.enum(['approve', 'once', 'session', 'always', 'deny']) }),
  'clarify.respond': z.object({ session_id: session, request_id: z.string().min(1).max(128), answer: z.string() })
} as const
type Method = keyof typeof paramsSchemas

/** JSON-RPC errors; those of the agent and of the way to it have the first one. */
const FAILED = -32_000
const NOT_FOUND = -32_001
const NO_JSON = -32_700
const NO_REQUEST = -32_600
const NO_METHOD = -32_601
const NO_PARAMS = -32_602

class Refused extends Error {
  readonly code: number

  constructor (code: number, message: string) {
    super(message)
    this.code = code
  }
}

/** What a page sends, as JSON-RPC, with the answer to it. Never rejects. */
export async function submitted (link: AgentLink, message: string | Buffer): Promise<object> {
  let asked: z.output<typeof frameSchema>['id'] = null
  try {
    const frame = frameSchema.safeParse(json(message))
    if (!frame.success) throw new Refused(NO_REQUEST, 'a request is {"jsonrpc": "2.0", "id", "method", "params"}')
    asked = frame.data.id ?? null
    return { jsonrpc: '2.0', id: asked, result: await answer(link, frame.data.method, frame.data.params) }
  } catch (error) {
    const data = isSvcError(error) ? { data: { code: error.code } } : {}
    return { jsonrpc: '2.0', id: asked, error: { code: error instanceof Refused ? error.code : FAILED, message: messageOf(error), ...data } }
  }
}

async function answer (link: AgentLink, method: string, given: unknown): Promise<unknown> {
  if (!Object.hasOwn(paramsSchemas, method)) {
    throw new Refused(NO_METHOD, `'${method}' is not one of ${Object.keys(paramsSchemas).join(', ')}`)
  }
  const checked = paramsSchemas[method as Method].safeParse(given)
  if (!checked.success) throw new Refused(NO_PARAMS, `${method}: ${z.prettifyError(checked.error).slice(0, 300)}`)
  const params = checked.data
  if ('choice' in params) return await approve(link, params)
  const result = await link.call(method, params)
  if ('request_id' in params) link.questions.answered(params.request_id)
  return result
}

async function approve (link: AgentLink, { id: asked, choice }: z.output<typeof paramsSchemas['approval.respond']>): Promise<unknown> {
  const event = link.questions.approval(asked)
  if (event === undefined) throw new Refused(NOT_FOUND, 'this approval is already answered, void, or queued behind an earlier one of its session')
  const wanted = choice === 'approve' ? 'once' : choice
  const { choices } = event.payload
  if (Array.isArray(choices) && !choices.includes(wanted)) throw new Refused(NO_PARAMS, `the agent takes one of ${choices.join(', ').slice(0, 300)}`)
  link.questions.answered(asked)
  return await link.call('approval.respond', { session_id: event.session_id, choice: wanted })
}

function json (message: string | Buffer): unknown {
  try {
    return JSON.parse(String(message)) as unknown
  } catch {
    throw new Refused(NO_JSON, 'a message is not JSON')
  }
}
