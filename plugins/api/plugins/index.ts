import { core, definePlugin, defineRoute, sse, svcError, type PluginReport, type PluginService, type SseEvent } from 'svc-gateway/plugin'
import { pluginListSchema, pluginNameParamsSchema, pluginParamsSchema, pluginSchema, reloadSchema } from './schemas.js'

/**
 * `/api/plugins`: what is loaded and how it fares. A reload loads what the allow-list on disk names and never
 * installs anything: that takes the operator's own rights (`svc plugin add`).
 */
export default definePlugin({
  name: 'api-plugins',
  kind: 'routes',
  apiVersion: 1,
  requires: { activity: core.activity, plugins: core.plugins },
  register (ctx) {
    const { activity, plugins } = ctx.services
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/api/plugins',
      summary: 'List plugins with state, phase, code, milliseconds and origin',
      schema: { response: pluginListSchema },
      handler: () => ({ plugins: plugins.list() })
    }))
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/api/plugins/:name',
      summary: 'One plugin',
      schema: { params: pluginParamsSchema, response: pluginSchema },
      handler: ({ params: { name } }) => {
        const report = plugins.list().find(plugin => plugin.name === name)
        if (report !== undefined) return report
        throw svcError('plugin.not_found', `no such plugin: '${name}'; GET /api/plugins lists all plugins`, { details: { plugin: name } })
      }
    }))
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/api/plugins/:name/log',
      summary: 'Stream of the log of a plugin',
      description: 'Every line from now on, including debug lines, regardless of `[server] log_level`. The plugin need not exist yet.',
      schema: { params: pluginNameParamsSchema },
      produces: 'text/event-stream',
      handler: ({ params: { name } }) => sse(signal => lines(plugins, name, signal))
    }))
    ctx.addRoute(defineRoute({
      method: 'POST',
      url: '/api/plugins/reload',
      summary: 'Load new and changed plugins, unload those no longer on the allow-list',
      description: 'Packages, linked folders and `engines/*.toml` are reloaded. Running requests continue, and a plugin whose new version fails keeps running. Installs nothing.',
      schema: { body: reloadSchema, response: pluginListSchema },
      example: {},
      handler: ({ actor, body, requestId }) => activity.audited({
        category: 'plugin', action: 'plugin.reload', target: 'plugins', actor, request_id: requestId
      }, async note => {
        note({ before: statesOf(plugins.list()) })
        const reports = await plugins.reload(body.again)
        note({ after: statesOf(reports) })
        return { plugins: reports }
      })
    }))
  }
})

async function* lines (plugins: PluginService, name: string, signal: AbortSignal): AsyncGenerator<SseEvent> {
  for await (const line of plugins.log(name, signal)) yield { data: line }
}

function statesOf (reports: readonly PluginReport[]): Record<string, string> {
  return Object.fromEntries(reports.map(({ name, state }) => [name, state]))
}
