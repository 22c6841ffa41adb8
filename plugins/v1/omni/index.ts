import { core, definePlugin } from 'svc-gateway/plugin'
import { imageMakerRef } from '../images/ref.js'
import { answerWithTools } from './answer.js'

/** The tool loop of chat requests with `omni: true`. See README.md. */
export default definePlugin({
  name: 'v1-omni',
  kind: 'service',
  apiVersion: 1,
  requires: {
    dispatch: core.dispatch,
    slots: core.slots,
    models: core.models,
    config: core.config,
    gpu: core.gpu,
    clock: core.clock,
    providers: core.providers,
    images: imageMakerRef,
    tools: core.tools
  },
  register (ctx) {
    const { services } = ctx
    let stop = (): void => {}
    ctx.onStart(() => {
      stop = services.dispatch.intercept('chat', 'omni', (call, options) => answerWithTools(services, call, options))
    })
    ctx.onStop(() => stop())
  }
})
