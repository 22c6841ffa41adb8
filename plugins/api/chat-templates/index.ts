import { core, definePlugin } from 'svc-gateway/plugin'
import { chatTemplateError } from './errors.js'
import { LintProcess } from './lint-process.js'
import { templateRoutes } from './routes.js'
import { TemplateCatalog } from './template-catalog.js'

/** `/api/chat-templates`: bundled and operators' own chat templates, checked. */
export default definePlugin({
  name: 'api-chat-templates',
  kind: 'routes',
  apiVersion: 1,
  errors: chatTemplateError,
  requires: { activity: core.activity, clock: core.clock, config: core.config, models: core.models },
  register (ctx) {
    const { activity, clock, config, models } = ctx.services
    const lints = new LintProcess(clock)
    const catalog = new TemplateCatalog(models, lints, ctx.log)
    for (const route of templateRoutes({ activity, config, catalog })) ctx.addRoute(route)
    ctx.onStart(() => catalog.seed())
    ctx.onStop(() => lints.close())
  }
})
