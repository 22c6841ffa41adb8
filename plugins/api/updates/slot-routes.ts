import { defineRoute, messageOf, type AnyRoute, type SlotService } from 'svc-gateway/plugin'
import { tag, type UpdatesApi } from './check-routes.js'
import { restartBodySchema, restartedSchema, slotDriftSchema } from './schemas.js'

export function slotRoutes ({ activity, slots }: UpdatesApi): AnyRoute[] {
  return [
    defineRoute({
      method: 'GET',
      url: '/api/updates/slot-drift',
      tag,
      summary: 'Running slots whose settings have changed since they started',
      description: 'Shows flags, image and mounts; of variables only that they differ.',
      schema: { response: slotDriftSchema },
      handler: () => {
        const found = drifted(slots).map(slot => ({ slot, diffs: [...slots.differences(slot)] }))
        return { count: found.length, slots: found }
      }
    }),
    defineRoute({
      method: 'POST',
      url: '/api/updates/restart-slots',
      tag,
      summary: 'Restart the slots that have drifted',
      description: 'One after the other, each once its requests have ended; with `slots` only those of them. Slots that have not drifted are not restarted.',
      schema: { body: restartBodySchema, response: restartedSchema },
      example: {},
      handler: async ({ body, actor, requestId, signal }) => {
        const asked = body.slots
        // a name that there is not is a mistake, and none is restarted
        for (const name of asked ?? []) slots.config(name)
        const names = drifted(slots).filter(name => asked?.includes(name) ?? true)
        const restarted: string[] = []
        const failed: Array<{ slot: string, error: string }> = []
        for (const name of names) {
          signal.throwIfAborted()
          // an order that came meanwhile may have restarted it
          if (!drifted(slots).includes(name)) continue
          const row = { category: 'updates', action: 'updates.restart_slot', target: name, actor, request_id: requestId }
          await activity.audited(row, async () => await slots.restart(name, { signal }))
            .then(() => restarted.push(name), (error: unknown) => failed.push({ slot: name, error: messageOf(error) }))
        }
        return { restarted, failed, count: restarted.length }
      }
    })
  ]
}

function drifted (slots: SlotService): readonly string[] {
  return slots.names().filter(name => slots.status(name).configDrift)
}
