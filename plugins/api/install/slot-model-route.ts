import { join } from 'node:path'
import { defineRoute, type AnyRoute } from 'svc-gateway/plugin'
import { installError } from './errors.js'
import type { InstallApi } from './install-api.js'
import { noPending } from './plan.js'
import { nameParamsSchema, slotModelBodySchema, slotModelSchema } from './schemas.js'

/** The model that a slot loads by default: what `svc slot swap` writes down. */
export function slotModelRoute ({ activity, config, slots }: InstallApi): AnyRoute {
  return defineRoute({
    method: 'PUT',
    url: '/api/install/slots/:name/model',
    tag: 'First run',
    summary: 'Write a model into a slot file',
    description: 'Everything else in the file stays. Nothing is loaded, and the model is not checked.',
    schema: { params: nameParamsSchema, body: slotModelBodySchema, response: slotModelSchema },
    example: { model_id: 'qwen3-4b' },
    handler: call => {
      const { name } = call.params
      const given = call.body.model_id
      const model = typeof given === 'string' ? given.trim() : ''
      if (model === '') throw installError('install.model_id_required', 'the body needs `model_id`, the model of the slot', { param: 'model_id', details: { slot: name } })
      if (!slots.names().includes(name)) {
        throw installError('install.slot_toml_not_found', `there is no slot file ${name}.toml; create it with \`svc slot create ${name} --model <model>\``, { details: { slot: name } })
      }
      const row = { category: 'install', action: 'install.slot_model', target: name, actor: call.actor, request_id: call.requestId }
      return activity.audited(row, async note => {
        const { model: before, meta } = slots.config(name)
        note({ before: { model: before.default } })
        // a slot that waited for another model waits no more
        const waited = meta?.pending_model == null ? {} : { meta: noPending, enabled: true }
        await slots.update(name, { model: { default: model }, ...waited })
        note({ after: { model } })
        return { slot: name, model_id: model, path: join(config.paths.slots, `${name}.toml`) }
      })
    }
  })
}
