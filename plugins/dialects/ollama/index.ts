import { core, definePlugin } from 'svc-gateway/plugin'
import { libraryRef } from '../../services/library/ref.js'
import { pullsRef } from '../../services/pull/ref.js'
import { chatOverMessages } from '../../v1/over-messages/ref.js'
import { ollamaError } from './errors.js'
import { libraryRoutes } from './library-routes.js'
import { manageRoutes } from './manage-routes.js'
import { OllamaPort } from './port.js'
import { dialectSettings } from './settings.js'
import { talkRoutes } from './talk/talk-routes.js'

/** Ollama's API, and the port that its clients look at. */
export default definePlugin({
  name: 'ollama',
  kind: 'routes',
  apiVersion: 1,
  errors: ollamaError,
  settings: dialectSettings,
  requires: {
    activity: core.activity,
    clock: core.clock,
    config: core.config,
    dispatch: core.dispatch,
    events: core.events,
    files: core.modelFiles,
    library: libraryRef,
    listeners: core.listeners,
    models: core.models,
    pulls: pullsRef,
    slots: core.slots
  },
  register (ctx) {
    const { services, log } = ctx
    const otherwise = chatOverMessages(services.dispatch, services.clock)
    const port = new OllamaPort({ ...services, log })
    const routes = [...talkRoutes(services, otherwise), ...libraryRoutes(services), ...manageRoutes(services)]
    for (const route of routes) ctx.addRoute(route)
    ctx.addHealth(() => port.health)
    let unfollow = (): void => {}
    ctx.onStart(async () => {
      unfollow = services.config.onChange(() => { void port.follow() })
      await port.follow()
    })
    ctx.onStop(async () => {
      unfollow()
      await port.close()
    })
  }
})
