/*
 * A gateway with one tool server that does not end by itself, to be killed from outside. Arguments: its home. Says the pid of
 * the server once it runs.
 */
import { createTestGateway } from '../../../../kernel/testing/index.js'
import { core, definePlugin } from '../../../../kernel/contract/index.js'
import toolServers from '../../../../plugins/services/tool-servers/index.js'
import { toolServersRef } from '../../../../plugins/services/tool-servers/ref.js'

const inside = definePlugin({
  name: 'inside',
  kind: 'service',
  apiVersion: 1,
  requires: { desk: toolServersRef, events: core.events },
  register (ctx) {
    const { desk, events } = ctx.services
    ctx.onStart(() => {
      void (async () => {
        for await (const { data } of events.subscribe({ type: 'mcp.server.state' }, ctx.signal)) {
          if (data.state === 'running') process.stdout.write(`${desk.get('odd').status.pid}\n`)
        }
      })()
    })
  }
})
await createTestGateway({ env: { PATH: process.env.PATH }, home: process.argv[2]!, plugins: [inside, toolServers] })
