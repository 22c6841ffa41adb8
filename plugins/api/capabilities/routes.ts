import {
  backendDevices, defineRoute, devices, jsonAnswer, KeptJson, whileConnected, type ActivityLog, type AnyRoute,
  type ConfigService, type Device, type ProviderCatalog, type SlotService
} from 'svc-gateway/plugin'
import type { z } from 'zod'
import {
  capabilityChildren, capabilityGroupOf, capabilityGroups, type CapabilityChild
} from '../../services/capabilities/ref.js'
import { applyFailed, invalidSelection } from './capability-errors.js'
import { byGroup, catalogs } from './catalog.js'
import { capabilityError } from './errors.js'
import { isChange, migrateSelections } from './migrate.js'
import type { Overlay } from './overlay.js'
import type { SelectionChange, SelectionPatch } from './ref.js'
import {
  capabilitiesSchema, migrateBodySchema, migrationSchema, placeParamsSchema, selectBodySchema, selectedSchema,
  type selectionViewSchema
} from './schemas.js'
import { capabilityTools } from './tools.js'

export interface CapabilityApi {
  readonly activity: ActivityLog
  readonly config: ConfigService
  readonly overlay: Overlay
  readonly providers: Pick<ProviderCatalog, 'deviceWords'>
  readonly slots: SlotService
}

const never = new AbortController().signal
const fields = ['device', 'backend', 'provider', 'model', 'enabled']

/** `/api/capabilities`. */
export function capabilityRoutes (api: CapabilityApi): AnyRoute[] {
  const { activity, config, overlay, slots } = api
  const kept = new KeptJson()
  return [
    defineRoute({
      method: 'GET',
      url: '/api/capabilities',
      summary: 'Current and possible choices for embeddings, reranking, speech and images',
      schema: { response: capabilitiesSchema },
      tool: capabilityTools.list,
      handler: async () => {
        const source = await overlay.offer()
        const { models, curated, providers, hardware, engineModels } = source
        const parts = [models, curated, hardware, config.snapshot, ...providers, JSON.stringify([...engineModels ?? []])]
        const all = kept.of(parts, () => catalogs(source))
        const selections = byGroup(child => selectionView(api, child))
        const [hosts, selected] = [source.hosts, selections].map(part => JSON.stringify(part))
        return jsonAnswer(`{"backends":${hosts},"catalogs":${all},"selections":${selected}}`)
      }
    }),
    defineRoute({
      method: 'POST',
      url: '/api/capabilities/migrate',
      summary: 'Replace selections that are no longer valid with valid ones',
      schema: { body: migrateBodySchema, response: migrationSchema },
      example: { dry_run: true },
      handler: async call => {
        const { dry_run: dryRun } = call.body
        const work = async (): Promise<z.output<typeof migrationSchema>> => {
          const rows = await slots.change(draft => migrateSelections(draft.config, overlay.source()), { dryRun })
          return { dry_run: dryRun, changed: rows.filter(isChange).length, rows: [...rows] }
        }
        if (dryRun) return await work()
        const row = { category: 'capability', action: 'capability.migrate', target: 'capabilities', actor: call.actor, request_id: call.requestId }
        return await activity.audited(row, work)
      }
    }),
    defineRoute({
      method: 'POST',
      url: '/api/capabilities/:slot/:child',
      summary: 'Choose what serves a capability, and apply it',
      description: 'Waits until the engine has applied it. The selection is kept even if the engine fails (503).',
      schema: { params: placeParamsSchema, body: selectBodySchema, response: selectedSchema },
      example: { enabled: false },
      tool: capabilityTools.set,
      handler: call => {
        const { slot: group, child: name } = call.params
        const child = childOf(group, name)
        const patch = patchOf(child, call.body, api.providers)
        const row = { category: 'capability', action: 'capability.apply', target: `${group}/${child}`, actor: call.actor, request_id: call.requestId }
        return whileConnected(call, activity.audited(row, async note => {
          note({ before: overlay.selection(child) })
          const change = await slots.change(draft => overlay.select(draft, child, patch))
          note({ after: change.selection })
          // an order, not a question: the client that leaves does not take it back
          await overlay.converge(child, never).catch((error: unknown) => { throw applyFailed(child, change.slot, error) })
          return { ok: true as const, selection: changeView(api, change) }
        }))
      }
    })
  ]
}

function selectionView ({ overlay, slots }: CapabilityApi, child: CapabilityChild): z.output<typeof selectionViewSchema> {
  const selection = overlay.selection(child)
  const slot = overlay.slotOf(child)
  return { ...selection, backend: selection.device, slot, status: statusOf(slots, slot) }
}

function changeView ({ slots }: CapabilityApi, { selection, slot, pendingReload }: SelectionChange): z.output<typeof selectedSchema>['selection'] {
  return { ...selection, slot, status: statusOf(slots, slot), pending_reload: pendingReload }
}

function statusOf (slots: SlotService, name: string): z.output<typeof selectionViewSchema>['status'] {
  return slots.names().includes(name) ? slots.status(name).state : 'offline'
}

function childOf (group: string, name: string): CapabilityChild {
  if (!Object.hasOwn(capabilityGroups, group)) {
    throw capabilityError('capability.unknown_slot', `no such group of capabilities: '${group}'; there are ${Object.keys(capabilityGroups).join(', ')}`,
      { param: 'slot', details: { slot: group } })
  }
  const child = capabilityChildren.find(other => other === name && capabilityGroupOf(other) === group)
  if (child !== undefined) return child
  const children = capabilityChildren.filter(other => capabilityGroupOf(other) === group)
  throw capabilityError('capability.unknown_child', `'${group}' has no capability '${name}'; it has ${children.join(', ')}`, { param: 'child', details: { slot: group, child: name } })
}

function patchOf (
  child: CapabilityChild, body: z.output<typeof selectBodySchema>, providers: Pick<ProviderCatalog, 'deviceWords'>
): SelectionPatch {
  const unknown = Object.keys(body).filter(key => !fields.includes(key))
  if (unknown.length > 0) {
    throw capabilityError('capability.unknown_fields', `${unknown.join(', ')} cannot be set; known here: ${fields.join(', ')}`, { details: { unknown, allowed: fields } })
  }
  const { device, backend, provider, model, enabled } = body
  const named = backend == null ? backend : deviceNamed(child, backend, providers)
  if (device !== undefined && named !== undefined && device !== named) throw invalidSelection(child, '`backend` contradicts `device`', 'backend')
  const wanted = device !== undefined ? device : named
  return {
    ...(wanted === undefined ? {} : { device: wanted }),
    ...(provider === undefined ? {} : { provider }),
    ...(model === undefined ? {} : { model }),
    ...(enabled === undefined ? {} : { enabled })
  }
}

function deviceNamed (child: CapabilityChild, backend: string, { deviceWords }: Pick<ProviderCatalog, 'deviceWords'>): Device {
  const named = Object.hasOwn(backendDevices, backend) ? backendDevices[backend] : deviceWords.get(backend)
  const device = named ?? devices.find(id => id === backend)
  if (device !== undefined) return device
  throw invalidSelection(child, `'${backend}' is not a backend; there are ${devices.join(', ')}`, 'backend')
}
