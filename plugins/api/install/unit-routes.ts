import { defineRoute, whileConnected, type AnyRoute } from 'svc-gateway/plugin'
import type { InstallApi } from './install-api.js'
import { repairedSchema, unitParamsSchema, unitsSchema } from './schemas.js'
import { listUnits, repairUnit } from './units.js'

/** The units of the machine that a first run may have to bring up again. */
export function unitRoutes ({ activity }: InstallApi): AnyRoute[] {
  return [
    defineRoute({
      method: 'GET',
      url: '/api/install/services',
      tag: 'First run',
      summary: 'Units that can be restarted through the gateway',
      schema: { response: unitsSchema },
      handler: async () => ({ services: [...await listUnits()] })
    }),
    defineRoute({
      method: 'POST',
      url: '/api/install/services/:unit/repair',
      tag: 'First run',
      summary: 'Restart a unit',
      schema: { params: unitParamsSchema, response: repairedSchema },
      handler: call => {
        const { unit } = call.params
        const row = { category: 'install', action: 'install.repair', target: unit, actor: call.actor, request_id: call.requestId }
        return whileConnected(call, activity.audited(row, () => repairUnit(unit)))
      }
    })
  ]
}
