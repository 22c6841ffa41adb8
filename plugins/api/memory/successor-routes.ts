import { pipeline } from 'node:stream/promises'
import { defineRoute, handled, pause, svcError, type ActivityLog, type AnyRoute, type Clock, type ConfigService, type RouteCall } from 'svc-gateway/plugin'
import type { Readable } from 'node:stream'
import { z } from 'zod'
import {
  askEngine, bankPath, committedSignal, engineFailure, engineValue, memoryError, readReply, type EngineAnswer, type MemoryService
} from '../../services/memory/ref.js'
import { enteredBank } from './access.js'
import { bankParam, BANKS, engineAnswerSchema, reply, tag } from './bank-routes.js'
import { bounded } from './body.js'
import { destructionOf } from './destruction.js'
import { dialect } from './dialect.js'
import { writtenDown } from './written-down.js'

export interface SuccessorDeps {
  readonly activity: ActivityLog
  readonly clock: Clock
  readonly config: ConfigService
  readonly memory: MemoryService
}

const EXPORT_LOOK_MS = 250
const traits = ['skepticism', 'literalism', 'empathy'] as const
const USUAL_TRAIT = 3
/** Banks whose id or name has that of another one in it. */
const MOST_NAMES = 1000
const params = z.strictObject({ bank: bankParam })
const fileSchema = z.unknown().meta({ type: 'object', properties: { file: { type: 'string', format: 'binary' } }, required: ['file'] })
const trait = z.int().min(1).max(5)
const profileSchema = z.strictObject({
  bank_id: z.string(),
  name: z.string(),
  disposition: z.strictObject({ skepticism: z.int(), literalism: z.int(), empathy: z.int() }),
  mission: z.string()
})

type Config = Readonly<Record<string, unknown>>

/** Routes that engines answer 410, made of what took their place. */
export function successorRoutes ({ activity, clock, config, memory }: SuccessorDeps): AnyRoute[] {
  const profileOf = async (bank: string, signal: AbortSignal, updates?: object): Promise<z.output<typeof profileSchema>> => {
    const question = updates === undefined ? { method: 'GET' } : { method: 'PATCH', body: { updates } }
    const answer = await engineValue(memory.engine(), { ...question, path: bankPath(bank, 'config'), signal }) as Config
    // the bank may have been asked for by another name of it
    const id = typeof answer.bank_id === 'string' ? answer.bank_id : bank
    return profileIn(bank, await nameOf(id, signal), (answer.config ?? {}) as Config)
  }
  /** The list of banks alone tells names; what it is asked for is a part of an id or name. */
  const nameOf = async (bank: string, signal: AbortSignal): Promise<string> => {
    const query = new URLSearchParams({ q: bank, limit: String(MOST_NAMES) }).toString()
    const { banks } = await engineValue(memory.engine(), { method: 'GET', path: '/v1/default/banks', query, signal }) as Config
    const row = Array.isArray(banks) ? (banks as Config[]).find(each => each.bank_id === bank) : undefined
    return typeof row?.name === 'string' ? row.name : bank
  }
  return [
    defineRoute({
      method: 'GET',
      url: `${BANKS}/:bank/profile`,
      tag,
      dialect,
      summary: 'Disposition and mission of a bank',
      schema: { params, response: profileSchema },
      handler: async call => {
        const bank = await enteredBank(memory, call)
        return await profileOf(bank, call.signal)
      }
    }),
    defineRoute({
      method: 'PUT',
      url: `${BANKS}/:bank/profile`,
      tag,
      dialect,
      summary: 'Change the disposition or mission of a bank',
      schema: {
        params,
        body: z.strictObject({
          disposition: z.strictObject({ skepticism: trait, literalism: trait, empathy: trait }).partial().optional(),
          mission: z.string().max(10_000).optional()
        }),
        response: profileSchema
      },
      example: { disposition: { skepticism: 3, literalism: 3, empathy: 4 } },
      handler: async call => {
        const bank = await enteredBank(memory, call)
        const { disposition = {}, mission } = call.body
        const updates = {
          ...Object.fromEntries(Object.entries(disposition).map(([name, value]) => [`disposition_${name}`, value])),
          ...mission === undefined ? {} : { reflect_mission: mission }
        }
        return await profileOf(bank, call.signal, updates)
      }
    }),
    defineRoute({
      method: 'GET',
      url: `${BANKS}/:bank/document-transfer`,
      tag,
      dialect,
      summary: 'All documents of a bank as a zip file',
      description: 'Waits until the engine has created it.',
      schema: { params },
      // generated clients read bytes by this name alone
      produces: 'application/octet-stream',
      answers: [{ type: '*/*', description: 'A zip file' }],
      handler: async call => {
        const bank = await enteredBank(memory, call)
        const signal = call.signal
        const engine = memory.engine()
        // one whose client leaves now is cancelled by its id
        const begun = await engineValue(engine, { method: 'POST', path: bankPath(bank, 'document-transfer', 'export'), signal: committedSignal() })
        const url = await exported(bank, String((begun as { readonly operation_id?: unknown }).operation_id), signal)
        const [path = '', query = ''] = url.split('?')
        const answer = await engine.request({ method: 'GET', path, query, headers: {}, body: null, signal })
        if (answer.status > 299) throw engineFailure(await readReply(answer), path)
        call.reply.hijack()
        call.reply.raw.writeHead(200, {
          'content-type': 'application/zip',
          'content-disposition': `attachment; filename="${bank}-documents.zip"`,
          'x-request-id': call.requestId
        })
        if (Buffer.isBuffer(answer.body)) call.reply.raw.end(answer.body)
        else await pipeline(answer.body, call.reply.raw).catch(() => { call.reply.raw.destroy() })
        return handled
      }
    }),
    defineRoute({
      method: 'POST',
      url: `${BANKS}/:bank/document-transfer`,
      tag,
      dialect,
      summary: 'Import the documents of such a zip file into a bank',
      description: 'Multipart with `file`; `?on_conflict=` skip, replace or new-id. Continues after the answer: the operation shows the progress.',
      schema: { params, body: fileSchema, response: engineAnswerSchema },
      consumes: 'multipart/form-data',
      example: { file: '@documents.zip' },
      answers: [{ status: 202 }],
      bodyKind: 'stream',
      handler: async call => {
        const bank = await enteredBank(memory, call)
        const { request: { raw, headers }, actor, requestId } = call
        if (!/^multipart\/form-data/i.test(headers['content-type'] ?? '')) {
          throw svcError('request.unsupported_media_type', 'send the file as multipart/form-data, as `file`')
        }
        const path = bankPath(bank, 'document-transfer')
        const query = (raw.url ?? '').split('?')[1] ?? ''
        const { 'content-type': type, 'content-length': length } = headers
        const limit = config.snapshot.svc.server.upload_limit_bytes
        const body = bounded(call.body as Readable, Number(length ?? 0), limit)
        const destruction = destructionOf('POST', bank, ['document-transfer'], query)
        const ask = (signal: AbortSignal): Promise<EngineAnswer> => memory.engine().request({
          method: 'POST', path, query, headers: { 'content-type': type, 'content-length': length }, body, signal
        })
        const answer = await readReply(destruction === null ? await ask(call.signal)
          : await writtenDown(activity, destruction, { actor, request_id: requestId }, () => ask(committedSignal())))
        if (answer.status > 299) throw engineFailure(answer, path)
        return reply(call as unknown as RouteCall, answer)
      }
    })
  ]

  /** Where the file of an export is, once it is made. One whose client leaves is cancelled: each new try begins another. */
  async function exported (bank: string, operation: string, signal: AbortSignal): Promise<string> {
    const path = bankPath(bank, 'operations', operation)
    try {
      for (;;) {
        const { status, result_metadata: result, error_message: why } = await engineValue(memory.engine(), { method: 'GET', path, signal }) as Config
        const { download_url: url } = (result ?? {}) as { readonly download_url?: unknown }
        if (status === 'completed' && typeof url === 'string' && url.startsWith('/')) return url
        if (status !== 'pending' && status !== 'processing') {
          throw memoryError('memory.engine_error', `the export ended as ${String(status)}: ${typeof why === 'string' ? why : 'no file was created'}`)
        }
        await pause(clock, EXPORT_LOOK_MS, signal)
        signal.throwIfAborted()
      }
    } catch (error) {
      // where it is over meanwhile, the engine refuses
      if (signal.aborted) await askEngine(memory.engine(), { method: 'DELETE', path, signal: committedSignal() }).catch(() => null)
      throw error
    }
  }
}

function profileIn (bank: string, name: string, config: Config): z.output<typeof profileSchema> {
  const value = (name: string): number => {
    const own = config[`disposition_${name}`]
    return typeof own === 'number' ? own : USUAL_TRAIT
  }
  const [skepticism, literalism, empathy] = traits.map(value) as [number, number, number]
  return {
    bank_id: bank,
    name,
    disposition: { skepticism, literalism, empathy },
    mission: typeof config.reflect_mission === 'string' ? config.reflect_mission : ''
  }
}
