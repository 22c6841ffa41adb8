import { svcError, type EventBus, type ModelRegistry, type SlotService } from 'svc-gateway/plugin'
import type { ModelPulls } from '../../services/pull/ref.js'
import { modelError } from './errors.js'

export interface DeleteServices {
  readonly events: EventBus
  readonly models: ModelRegistry
  readonly pulls: ModelPulls
  readonly slots: SlotService
}

/** Slots that have the model in their file, or run it. */
export function slotsUsing ({ slots }: Pick<DeleteServices, 'slots'>, id: string): readonly string[] {
  return slots.names().filter(name => slots.config(name).model.default === id || slots.status(name).modelId === id)
}

/**
 * Removes a row and what refers to it: a pull that brings it is cancelled, the row goes and `[model] default` is cleared in one
 * change, then engines that run it are unloaded. The event comes last. The file of the model stays where it is. Throws
 * `model.not_found`, and `model.in_use` without `cascade`.
 */
export async function deleteModel (
  services: DeleteServices, id: string, { cascade }: { readonly cascade: boolean }
): Promise<readonly string[]> {
  const { events, models, pulls, slots } = services
  if (models.get(id) === undefined) {
    throw svcError('model.not_found', `no such model: '${id}'; GET /api/models lists all models`, { details: { model: id } })
  }
  const affected = slotsUsing(services, id)
  if (affected.length > 0 && !cascade) {
    throw modelError('model.in_use', `model '${id}' is used by ${affected.join(', ')}; give them another model first, or delete it with force_cascade`,
      { details: { model: id, affected_slots: affected } })
  }
  // it would come back by itself
  if (pulls.list().some(pull => pull.model_id === id && pull.finished_at === null)) await pulls.cancel(id)
  const row = new Map([[id, null]])
  await (affected.length === 0 ? models.remove(id) : models.change(() => row, file => slots.change(async draft => {
    await draft.config.putRegistry(file)
    for (const name of affected) {
      if (draft.config.slots.get(name)?.model.default === id) await draft.update(name, { model: { default: null } })
    }
  })))
  for (const name of affected) await letGo(slots, name, id)
  events.emit({
    type: 'model.deleted', source: `model:${id}`, message: `model ${id} is deleted`, data: { id, affected_slots: affected }
  })
  return affected
}

/** A slot that was deleted meanwhile runs nothing any more. */
async function letGo (slots: SlotService, name: string, id: string): Promise<void> {
  if (!slots.names().includes(name)) return
  if (slots.status(name).modelId === id && (slots.isLive(name) || slots.status(name).state !== 'offline')) await slots.unload(name, { force: true })
}
