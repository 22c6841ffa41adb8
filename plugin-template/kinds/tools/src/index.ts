import { core, definePlugin, defineTool } from 'svc-gateway/plugin'
import { z } from 'zod'

export default definePlugin({
  name: 'example',
  kind: 'mcp',
  apiVersion: 1,
  requires: { slots: core.slots },
  // declares only: what needs I/O belongs in ctx.onStart
  register (ctx) {
    const { slots } = ctx.services
    ctx.addTool(defineTool({
      server: 'example',
      name: 'slot_state',
      description: 'What a slot of the gateway does at the moment',
      input: z.object({ slot: z.string().meta({ description: 'Name of the slot' }) }),
      readOnly: true,
      // what is thrown is told to the tool's caller
      handler: async ({ input: { slot }, actor }) => {
        ctx.log.debug({ slot, actor }, 'slot_state')
        const { state, message, inFlight } = slots.status(slot)
        return { slot, state, message, inFlight }
      }
    }))
  }
})
