import type {
  DispatchService, ModelFileFacts, ModelFiles, ModelObject, ModelRegistry, RouteCall, SlotService
} from 'svc-gateway/plugin'
import { isTextModel } from '../../v1/models/ref.js'
import { capabilitiesOf, detailsOf, digestOf, modelInfo, tagRow, type Known } from './details.js'
import { LONGEST_MS } from './keep-alive.js'
import { nameHere, spellingsOf, taggedName } from './names.js'
import { contextOf } from './talk/server.js'

export interface LibraryServices {
  readonly dispatch: DispatchService
  readonly files: ModelFiles
  readonly models: ModelRegistry
  readonly slots: SlotService
}

const textSurfaces = ['chat', 'embeddings'] as const
const textTypes: ReadonlySet<string> = new Set(['llm', 'embedding'])
const VIA = 'x-svc-via'

/** `/api/tags`: what `GET /v1/models` lists, as far as it chats or embeds. */
export async function tags ({ dispatch, models }: LibraryServices, { signal, request }: RouteCall): Promise<object> {
  const rows = await dispatch.models(signal, request.headers[VIA])
  return { models: rows.filter(isTextModel).map(row => tagRow(taggedName(row.id), knownAs(dispatch, models, row))) }
}

function knownAs (dispatch: DispatchService, models: ModelRegistry, row: ModelObject): Known {
  const target = dispatch.target(row.id, 'chat') ?? dispatch.target(row.id, 'embeddings')
  const id = target !== null && target.slot !== null ? target.modelId : null
  return { row, model: id === null ? null : models.get(id) ?? null }
}

/** `/api/show`. Throws `model.not_found`. */
export async function show (services: LibraryServices, name: string, signal: AbortSignal): Promise<object> {
  const { dispatch, files } = services
  const known = await knownOf(services, name, signal)
  const { model, row } = known
  const { id } = row
  const facts = model === null ? null : await factsOf(files, model.path, signal)
  const { context_length: context } = row
  const parameters = typeof context === 'number' && slotFor(dispatch, id) !== null ? [`num_ctx ${context}`] : []
  return {
    ...model === null || model.license === 'unknown' ? {} : { license: model.license },
    modelfile: [`FROM ${model?.id ?? id}`, ...parameters.map(text => `PARAMETER ${text}`), ''].join('\n'),
    parameters: parameters.join('\n'),
    template: facts?.chat_template ?? '',
    details: detailsOf(model),
    model_info: modelInfo(known, facts),
    capabilities: capabilitiesOf(known, facts),
    modified_at: row.created_at
  }
}

function slotFor (dispatch: DispatchService, id: string): string | null {
  return (dispatch.target(id, 'chat') ?? dispatch.target(id, 'embeddings'))?.slot ?? null
}

/** What is known of a name that is listed, of a slot that is not while it is not loaded, and of a model that no slot has yet. */
async function knownOf (services: LibraryServices, name: string, signal: AbortSignal): Promise<Known> {
  const { dispatch, models, slots } = services
  const id = nameHere(dispatch, name, textSurfaces)
  try {
    return knownAs(dispatch, models, await dispatch.model(id, signal))
  } catch (error) {
    const slot = slotFor(dispatch, id)
    if (slot !== null) {
      const context = contextOf(slots, slot)
      const does = slots.config(slot).type === 'embedding' ? 'embed' : 'chat'
      return knownAs(dispatch, models, { ...unlistedRow(id, [does]), ...context === null ? {} : { context_length: context } })
    }
    const model = spellingsOf(name.trim()).map(spelling => models.get(spelling)).find(found => found !== undefined)
    const row = model === undefined ? null : unlistedRow(model.id, model.capabilities)
    if (model === undefined || row === null || !isTextModel(row)) throw error
    return { row, model }
  }
}

function unlistedRow (id: string, capabilities: readonly string[]): ModelObject {
  return {
    id, object: 'model', created: 0, owned_by: 'svc', name: id, type: 'model', display_name: id, created_at: new Date(0).toISOString(),
    status: 'unloaded', capabilities
  }
}

/** Null for a file that is not here, or has no header to read. */
async function factsOf (files: ModelFiles, path: string, signal: AbortSignal): Promise<ModelFileFacts | null> {
  try {
    return await files.inspect(path, signal)
  } catch {
    signal.throwIfAborted()
    return null
  }
}

const up: ReadonlySet<string> = new Set(['ready', 'serving', 'idle'])

/**
 * `/api/ps`: the slots that are up, with what they hold and when they go.
 * @param now epoch milliseconds
 */
export async function running ({ models, slots }: LibraryServices, now: number): Promise<object> {
  const names = slots.names().filter(name => textTypes.has(slots.config(name).type) && up.has(slots.status(name).state))
  return {
    models: await Promise.all(names.map(async name => {
      const { modelId, lastUsedAt, startedAt, inFlight } = slots.status(name)
      const model = modelId === null ? null : models.get(modelId) ?? null
      const idleMs = slots.idleTimeoutMs(name)
      const isOnCpu = slots.device(name) === 'cpu'
      // the slot may be gone behind this
      const sizeMb = await slots.memoryMb(name)
      const size = sizeMb === null || sizeMb === 0 ? model?.size_bytes ?? 0 : Math.round(sizeMb * 1024 * 1024)
      const usedAt = inFlight > 0 ? now : lastUsedAt ?? startedAt ?? now
      // clients reckon with a date, also of an engine that is never unloaded
      const expiresAt = idleMs === null ? now + LONGEST_MS : usedAt + idleMs
      const row = { id: name, owned_by: 'svc' } as ModelObject
      return {
        name: taggedName(name),
        model: taggedName(name),
        size,
        digest: digestOf({ row, model }),
        details: detailsOf(model),
        expires_at: new Date(expiresAt).toISOString(),
        size_vram: isOnCpu ? 0 : size,
        context_length: contextOf(slots, name) ?? 0
      }
    }))
  }
}
