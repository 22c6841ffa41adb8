import type { Core } from '../core.js'
import type { Operation } from '../operations/operation.js'
import { operationsOf } from '../operations/operations.js'
import type { MentalModel } from './mental-model-table.js'

/** Has a mental model made anew in the background. */
export function submitRefresh (core: Core, bankId: string, model: MentalModel): Operation {
  return operationsOf(core).submit({
    bankId, type: 'refresh_mental_model', mentalModelId: model.id, result: { name: model.name, mental_model_id: model.id }
  })
}
