import { backendDevices, defineRoute, jsonAnswer, svcError, type AnyRoute, whileConnected } from 'svc-gateway/plugin'
import { z } from 'zod'
import { audited, auditedEdit, type Caller } from './audit.js'
import { slotError } from './errors.js'
import { slotListRowSchema, slotRecordSchema, slotRowSchema, type SlotRecord } from './record/record-schema.js'
import { reservedNames } from './reserved-names.js'
import {
  backendBodySchema, configBodySchema, createBodySchema, defaultsBodySchema, deletedSchema, forceQuerySchema, listQuerySchema,
  nameParamsSchema, slotFileSchema
} from './schemas.js'
import type { SlotApi } from './slot-api.js'
import { fitWarning } from './fit-warning.js'
import { readSlotFile } from './slot-file.js'
import { fileOf, requireSlotFile } from './record/slot-lookup.js'
import { slotTools } from './tools.js'

/** Slots as configuration: list, create, read, change, delete. */
export function configRoutes (api: SlotApi): AnyRoute[] {
  const { slots, records } = api
  const edit = async (call: Caller, name: string, action: string, patch: Readonly<Record<string, unknown>>) => {
    requireSlotFile(api, name)
    await auditedEdit(api, call, action, name, () => slots.update(name, patch))
    return await written(api, name)
  }
  return [
    defineRoute({
      method: 'GET',
      url: '/api/slots',
      summary: 'List slots, then upstreams',
      description: 'With `remote`, the slots of upstreams that are gateways follow: only their own, not those of further gateways. If one does not answer within two seconds, the row of its upstream says so.',
      schema: { querystring: listQuerySchema, response: z.array(slotListRowSchema) },
      tool: slotTools.list,
      handler: async ({ query }) => jsonAnswer(await (query.remote ? records.listJsonWithRemote() : records.listJson()))
    }),
    defineRoute({
      method: 'POST',
      url: '/api/slots',
      summary: 'Create a slot; does not start it',
      schema: { body: createBodySchema, response: slotRecordSchema },
      example: { name: 'helper', type: 'llm', device: 'cpu', model: { context_size: 4096 } },
      status: 201,
      tool: slotTools.create,
      handler: async call => {
        const { name: given, ...config } = call.body
        const name = newName(given)
        await audited(api, call, 'create', name, async note => note({ after: await slots.create(name, config) }))
        return await written(api, name)
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/slots/:name',
      summary: 'One slot or upstream',
      schema: { params: nameParamsSchema, response: slotRowSchema },
      tool: slotTools.status,
      handler: ({ params }) => records.find(params.name)
    }),
    defineRoute({
      method: 'DELETE',
      url: '/api/slots/:name',
      summary: 'Stop a slot and remove its file',
      schema: { params: nameParamsSchema, querystring: forceQuerySchema, response: deletedSchema },
      tool: slotTools.remove,
      handler: call => {
        const { params: { name }, query: { force } } = call
        const before = requireSlotFile(api, name)
        return whileConnected(call, audited(api, call, 'delete', name, async note => {
          note({ before })
          await slots.delete(name, { force })
          return { name, deleted: true as const, forced: force }
        }))
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/slots/:name/config',
      summary: 'The slot file',
      schema: { params: nameParamsSchema, response: slotFileSchema },
      handler: ({ params }) => readSlotFile(api, params.name)
    }),
    defineRoute({
      method: 'PUT',
      url: '/api/slots/:name/config',
      summary: 'Change the slot file',
      description: 'Most values apply at the next start of the engine; `enabled: false` unloads it.',
      schema: { params: nameParamsSchema, body: configBodySchema, response: slotRecordSchema },
      example: { idle_timeout_s: 600 },
      tool: slotTools.edit,
      handler: call => edit(call, call.params.name, 'edit_config', call.body)
    }),
    defineRoute({
      method: 'PATCH',
      url: '/api/slots/:name/defaults',
      summary: 'Change the [model] table of the slot file',
      schema: { params: nameParamsSchema, body: defaultsBodySchema, response: slotRecordSchema },
      example: { context_size: 8192 },
      tool: slotTools.assign,
      handler: call => edit(call, call.params.name, 'edit_defaults', { model: call.body })
    }),
    defineRoute({
      method: 'POST',
      url: '/api/slots/:name/backend',
      summary: 'Move a slot to other hardware: rewrites its device',
      schema: { params: nameParamsSchema, body: backendBodySchema, response: slotRecordSchema },
      example: { backend: 'cpu' },
      handler: call => edit(call, call.params.name, 'edit_backend', { device: backendDevices[call.body.backend] ?? null })
    })
  ]
}

/** The record after a write, with what would keep the slot from starting and whether its model is large for the device. */
async function written (api: SlotApi, name: string): Promise<SlotRecord> {
  const [record, warning, all] = await Promise.all([api.records.detail(name), fitWarning(api, name), api.configCheck.findings()])
  const findings = all.filter(({ file }) => file === fileOf(name))
    .map(({ path, message, code, severity }) => ({ path, message, code, severity }))
  return { ...record, ...(warning === null ? {} : { fit_warning: warning }), ...(findings.length === 0 ? {} : { findings }) }
}

/** Throws for what can be no slot's name because a route has it; everything else is the configuration's to judge. */
function newName (given: unknown): string {
  if (typeof given !== 'string' || given === '') {
    throw slotError('slot.name_required', 'a new slot needs a `name`: lowercase letters, digits, - or _, at most 32', { param: 'name' })
  }
  if (!reservedNames.has(given)) return given
  throw svcError('validation.invalid', `'${given}' cannot be the name of a slot: GET /api/slots/${given} is another route; choose another name`,
    { param: 'name', details: { fields: [{ path: 'name', message: `must not be one of ${[...reservedNames].join(', ')}` }] } })
}
