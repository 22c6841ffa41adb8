import { defineRoute, isSvcError, jsonAnswer, svcError, whileConnected, type ActivityLog, type AnyRoute, type Clock, type RouteCall } from 'svc-gateway/plugin'
import { z } from 'zod'
import {
  bankPath, committedSignal, engineFailure, identityOf, memoryError, noObject, readReply, shapeFailure, type EngineReply,
  type MemoryService
} from '../../services/memory/ref.js'
import { enteredBank, seenBanks } from './access.js'
import { destructionOf } from './destruction.js'
import { dialect } from './dialect.js'
import { engineRoutes, type EngineRoute } from './engine-routes.js'
import { memoryApiError } from './errors.js'
import { BANK_PATTERN, checkSegment, SEGMENT_PATTERN } from './names.js'

export interface BankDeps {
  readonly activity: ActivityLog
  readonly clock: Clock
  readonly memory: MemoryService
}

export const tag = 'Memory'
export const BANKS = '/api/memory/banks'
/** A template may be large. */
const BODY_LIMIT = 16 * 1024 * 1024

export const bankParam = z.string().meta({ description: 'Id of a bank', pattern: BANK_PATTERN, examples: ['shared'] })
const idParam = z.string().meta({ description: 'Id of it', pattern: SEGMENT_PATTERN, examples: ['b3b7a3c2-8a50-4b86-9a53-2f3f8a3f2d11'] })
/** Words of the engine: its version decides what is in them. */
export const engineAnswerSchema = z.union([z.looseObject({}), z.array(z.unknown())]).meta({ title: 'EngineAnswer', description: 'Answer of the memory engine' })
const bodySchema = z.looseObject({}).meta({ description: 'Request for the memory engine' })
const engineStatuses = [{ status: 201 }, { status: 202 }] as const

type RawCall = RouteCall<{ readonly bank: string, readonly id?: string }, unknown, Buffer | undefined>

/** Routes of the engine about one bank, and the list of banks. Queries and bodies pass as they come. */
export function bankRoutes (deps: BankDeps): AnyRoute[] {
  return [
    defineRoute({
      method: 'GET',
      url: BANKS,
      tag,
      dialect,
      summary: 'The banks of the memory',
      description: 'With `X-svc-Agent`, private banks of other agents are left out.',
      schema: { response: engineAnswerSchema },
      handler: async call => {
        const { agent } = identityOf(call.request.headers)
        const answer = await asked(deps, call as RouteCall, '/v1/default/banks', call.signal)
        const { value } = shaped(answer, { shape: ['banks', 'list'] }, '/v1/default/banks')
        return agent === null ? value : seenBanks(value as object, agent)
      }
    }),
    ...engineRoutes.map(route => engineRoute(deps, route))
  ]
}

const confirmQuerySchema = z.looseObject({ confirm: z.string().max(256).optional().meta({ description: 'Id of the bank, repeated' }) })

function engineRoute (deps: BankDeps, route: EngineRoute): AnyRoute {
  const { method, url, summary, example, body } = route
  return defineRoute({
    method,
    url: `${BANKS}/:bank${url}`,
    tag,
    dialect,
    summary,
    ...route.confirmed === true ? { description: 'Repeat the id of the bank, as `?confirm=` or as `confirm` in the body.' } : {},
    schema: {
      params: url.includes(':id') ? z.strictObject({ bank: bankParam, id: idParam }) : z.strictObject({ bank: bankParam }),
      ...route.confirmed === true ? { querystring: confirmQuerySchema } : {},
      ...body === true ? { body: bodySchema } : {},
      response: engineAnswerSchema
    },
    ...example === undefined ? {} : { example },
    answers: engineStatuses,
    bodyKind: body === true ? 'buffer' : 'none',
    ...body === true ? { bodyLimit: BODY_LIMIT, consumes: 'application/json' } : {},
    handler: call => answered(deps, route, call as unknown as RawCall)
  })
}

async function answered (deps: BankDeps, route: EngineRoute, call: RawCall): Promise<unknown> {
  const { params: { id }, actor, requestId } = call
  const bank = await enteredBank(deps.memory, call)
  if (id !== undefined) checkSegment(id, 'id')
  // while the memory is off nothing is to be confirmed or written down
  deps.memory.engine()
  const names = (route.target ?? route.url).split('/').slice(1).map(name => name === ':id' ? id! : name)
  const path = bankPath(bank, ...names)
  const destruction = destructionOf(route.method, bank, names)
  const ask = async (signal: AbortSignal): Promise<EngineReply> => {
    if (route.confirmed === true) checkConfirm(call, bank)
    return shaped(await asked(deps, call, path, signal), route, path)
  }
  if (destruction === null) return reply(call, await ask(call.signal))
  const row = { category: 'memory', ...destruction, actor, request_id: requestId, outcome: 'pending' } as const
  const work = deps.activity.audited(row, async note => {
    const done = await ask(committedSignal()).catch(notSupported)
    note({ after: done.value })
    return done
  })
  return reply(call, await whileConnected(call, work))
}

/** The engine's answer, byte for byte. */
export function reply (call: RouteCall, answer: EngineReply | symbol): unknown {
  if (typeof answer === 'symbol') return answer
  if (answer.status !== 200) void call.reply.code(answer.status)
  for (const name of ['x-ignored-params', 'x-total-count']) {
    const value = answer.headers[name]
    if (value !== undefined) void call.reply.header(name, value)
  }
  return jsonAnswer(answer.bytes)
}

/** Asks the engine with the query and the body of a request. Throws what it refuses. */
export async function asked (
  { memory }: Pick<BankDeps, 'memory'>, call: RouteCall<unknown, unknown, unknown>, path: string, signal: AbortSignal
): Promise<EngineReply> {
  const { method = 'GET', url = '' } = call.request.raw
  const mark = url.indexOf('?')
  const body = Buffer.isBuffer(call.body) && call.body.length > 0 ? call.body : null
  const answer = await readReply(await memory.engine().request({
    method,
    path,
    query: mark < 0 ? '' : url.slice(mark + 1),
    headers: { accept: 'application/json', ...body === null ? {} : { 'content-type': 'application/json', 'content-length': String(body.length) } },
    body,
    signal
  }))
  if (answer.status > 299) throw engineFailure(answer, path)
  return answer
}

function shaped (answer: EngineReply, { shape }: Pick<EngineRoute, 'shape'>, path: string): EngineReply {
  const { value } = answer
  if (shape === undefined) {
    if (typeof value !== 'object' || value === null) throw noObject(path)
    return answer
  }
  const [key, type] = shape
  const got = typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[key] : undefined
  if (type === 'list' ? Array.isArray(got) : typeof got === 'string') return answer
  throw shapeFailure(value, { key, type, path })
}

function checkConfirm ({ request: { raw }, body }: RawCall, bank: string): void {
  const query = new URL(raw.url ?? '', 'http://gateway').searchParams.get('confirm')
  const said = query ?? confirmIn(body)
  if (said === bank) return
  throw memoryApiError('memory.confirm_required', `deleting the bank '${bank}' deletes everything in it: repeat its id as ?confirm=${bank}, or as confirm in the body`, { param: 'confirm', details: { bank } })
}

function confirmIn (body: Buffer | undefined): unknown {
  if (body === undefined || body.length === 0) return null
  try {
    return (JSON.parse(body.toString('utf8')) as { readonly confirm?: unknown } | null)?.confirm
  } catch (error) {
    throw svcError('request.invalid_json', 'the body is not valid JSON', { cause: error })
  }
}

/** An engine that knows the address and not the verb cannot do it. */
function notSupported (error: unknown): never {
  if (isSvcError(error) && error.code === 'memory.engine_error' && error.status === 405) {
    throw memoryError('memory.engine_unsupported', 'this memory engine cannot delete that; invalidate it: PATCH with {"state": "invalidated"}', { details: error.details })
  }
  throw error
}
