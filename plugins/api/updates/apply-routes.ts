import { defineRoute, type AnyRoute } from 'svc-gateway/plugin'
import type { UpdateJob } from '../../services/updates/ref.js'
import { tag, type UpdatesApi } from './check-routes.js'
import { applyBodySchema, jobParamsSchema, jobSchema, rolledBackSchema } from './schemas.js'

export function applyRoutes ({ activity, updates }: UpdatesApi): AnyRoute[] {
  return [
    defineRoute({
      method: 'POST',
      url: '/api/updates/apply',
      tag,
      summary: 'Install a release',
      description: 'Answers at once; `/api/updates/status/{id}` shows the progress, even across the restart of the gateway. A release that does not stay up is rolled back automatically.',
      schema: { body: applyBodySchema, response: jobSchema },
      example: {},
      status: 202,
      handler: async ({ body, actor, requestId }) => {
        const { job, done } = await updates.apply(body.version ?? null)
        const row = { category: 'updates', action: 'updates.apply', target: body.version ?? job.channel, actor, request_id: requestId }
        activity.audited(row, async note => {
          const { state, error, resolved_version: target } = await done
          if (target !== null) note({ target })
          if (state === 'failed') throw new Error(error ?? 'it failed')
        }).catch(() => undefined)
        return shown(job)
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/updates/status/:id',
      tag,
      summary: 'Progress of an update or rollback',
      schema: { params: jobParamsSchema, response: jobSchema },
      handler: ({ params }) => shown(updates.job(params.id))
    }),
    defineRoute({
      method: 'POST',
      url: '/api/updates/rollback',
      tag,
      summary: 'Roll back to the previous release',
      description: 'Tries it on a copy of the home first, then restarts the gateway with it. A second rollback undoes the first.',
      schema: { response: rolledBackSchema },
      handler: ({ actor, requestId }) => {
        const row = { category: 'updates', action: 'updates.rollback', target: 'previous', actor, request_id: requestId }
        return activity.audited(row, async note => {
          const back = await updates.rollBack()
          note({ target: back.to, before: back.from, after: back.to })
          return {
            rolled_back: true as const,
            channel: updates.channel,
            rolled_back_to: back.to,
            previous_now: back.from,
            schema_warning: back.schemaWarning,
            running_version: back.runningVersion,
            restart_required: back.restartRequired,
            job: back.job
          }
        })
      }
    })
  ]
}

function shown (job: UpdateJob): UpdateJob & { notes: string[] } {
  return { ...job, notes: [...job.notes] }
}
