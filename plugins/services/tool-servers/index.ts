import { core, definePlugin } from 'svc-gateway/plugin'
import { mcpError } from './errors.js'
import { toolServersRef } from './ref.js'
import { settingsSchema } from './settings.js'
import { ToolServers } from './tool-servers.js'

/** Tool servers of others: the records of `mcp-servers/`, run or reached when they are needed. */
export default definePlugin({
  name: 'tool-servers',
  kind: 'service',
  apiVersion: 1,
  errors: mcpError,
  configSchema: settingsSchema,
  requires: {
    clock: core.clock, config: core.config, events: core.events, info: core.info, programs: core.programs, tools: core.tools
  },
  provides: [toolServersRef],
  register (ctx) {
    const { clock, config, events, info, programs, tools } = ctx.services
    const servers = new ToolServers({
      clock, config, events, programs, tools, table: ctx.table,
      folder: () => ctx.stateDir,
      settings: ctx.config,
      get version () { return info.version },
      warn: (fields, message) => ctx.log.warn(fields, message)
    })
    ctx.provide(toolServersRef, servers)
    ctx.addHealth(() => {
      const list = servers.list()
      return { servers: list.length, running: list.filter(({ status }) => ['running', 'reachable'].includes(status.state)).length }
    })
    let unfollow = (): void => {}
    ctx.onStart(() => {
      servers.follow(config.snapshot)
      unfollow = config.onChange(next => servers.follow(next))
    })
    ctx.onStop(async () => {
      unfollow()
      await servers.close()
    })
  }
})
