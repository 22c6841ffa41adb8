import type { Core } from '../core.js'
import type { Operation } from '../operations/operation.js'
import { operationsOf } from '../operations/operations.js'
import type { MentalModel } from './mental-model-table.js'

/** Has a mental model made anew in the background; `full` whatever its mode. */
export function submitRefresh (core: Core, bankId: string, model: MentalModel, full = false): Operation {
  return operationsOf(core).submit({
    ...full ? { payload: { full } } : {},
    bankId, type: 'refresh_mental_model', mentalModelId: model.id, result: { name: model.name, mental_model_id: model.id }
  })
}

/** Whether a refresh makes the whole document anew, whatever the mode of its mental model. Pure. */
export function isFullRefresh ({ payload }: Operation): boolean {
  return (payload as { readonly full?: unknown } | null)?.full === true
}
