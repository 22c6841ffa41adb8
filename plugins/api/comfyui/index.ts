import { core, definePlugin } from 'svc-gateway/plugin'
import { imageEngineRef } from '../../providers/imagegen/ref.js'
import { pullsRef } from '../../services/pull/ref.js'
import { comfyuiError } from './errors.js'
import { Launches } from './launches.js'
import { Orders } from './orders.js'
import { engineRoutes, modeRoutes } from './routes.js'

/** `/api/comfyui`: the image engine, and the GPU that it shares with language models. */
export default definePlugin({
  name: 'api-comfyui',
  kind: 'routes',
  apiVersion: 1,
  errors: comfyuiError,
  requires: {
    activity: core.activity,
    engine: imageEngineRef,
    gpu: core.gpu,
    hardware: core.hardware,
    pulls: pullsRef,
    requests: core.requests,
    slots: core.slots
  },
  register (ctx) {
    const { activity, slots } = ctx.services
    const api = { ...ctx.services, orders: new Orders(activity, ctx.log), launches: new Launches(slots) }
    for (const route of [...modeRoutes(api), ...engineRoutes(api)]) ctx.addRoute(route)
    ctx.onStop(() => api.orders.close())
  }
})
