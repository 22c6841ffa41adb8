import { uptime } from 'node:os'
import { core, definePlugin, defineRoute } from 'svc-gateway/plugin'
import { hardwareViewSchema } from './schemas.js'
import { hardwareView } from './view.js'

/** `/api/hardware`: what this machine is. */
export default definePlugin({
  name: 'api-hardware',
  kind: 'routes',
  apiVersion: 1,
  requires: { activity: core.activity, hardware: core.hardware },
  register (ctx) {
    const { activity, hardware } = ctx.services
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/api/hardware',
      tag: 'Hardware and statistics',
      summary: 'Hardware of this machine from the last probe',
      description: 'The uptime is current.',
      schema: { response: hardwareViewSchema },
      tool: {
        name: 'gpu_target_version',
        title: 'Hardware of this machine',
        description: 'Shows the processor, the GPUs with their targets, the NPU and the memory of this machine. Call it to choose a device or an image for a slot.',
        readOnly: true
      },
      handler: () => hardwareView(hardware.info, uptime())
    }))
    ctx.addRoute(defineRoute({
      method: 'POST',
      url: '/api/hardware/probe',
      tag: 'Hardware and statistics',
      summary: 'Probe the machine again and store the result in hardware.json',
      schema: { response: hardwareViewSchema },
      handler: ({ actor, requestId }) => activity.audited({
        category: 'system', action: 'system.hardware_probe', target: 'hardware.json', actor, request_id: requestId
      }, async note => {
        const before = hardware.info.platform
        const info = await hardware.probe()
        note({ before: { platform: before }, after: { platform: info.platform } })
        return hardwareView(info, uptime())
      })
    }))
  }
})
