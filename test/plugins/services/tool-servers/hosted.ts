import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { core, definePlugin, type ToolCatalogue, type ToolOutcome } from '../../../../kernel/contract/index.js'
import { createTestGateway, type TestGateway, type TestGatewayOptions } from '../../../../kernel/testing/index.js'
import { toolServersRef, type ServerState, type ToolServerService } from '../../../../plugins/services/tool-servers/ref.js'
import toolServers from '../../../../plugins/services/tool-servers/index.js'

export const oddServer = fileURLToPath(new URL('odd-server.js', import.meta.url))

export interface Hosted extends TestGateway {
  readonly catalogue: ToolCatalogue
  readonly desk: ToolServerService
  call (server: string, tool: string, args?: object, signal?: AbortSignal): Promise<ToolOutcome>
  /** Resolves when a server is in a state, at once when it is. */
  reaches (id: string, state: ServerState): Promise<void>
  /** Text of the first part of an answer. */
  text (server: string, tool: string, args?: object): Promise<string>
}

/** A record that runs the odd server. */
export function record (args: readonly string[] = [], more = ''): string {
  return `command = "node"\nargs = ${JSON.stringify([oddServer, ...args])}\n${more}`
}

/** A gateway with tool servers as real child processes. */
export async function hosted (
  t: Test, servers: Readonly<Record<string, string>>, options: TestGatewayOptions = {}
): Promise<Hosted> {
  let catalogue!: ToolCatalogue
  let desk!: ToolServerService
  const inside = definePlugin({
    name: 'inside',
    kind: 'service',
    apiVersion: 1,
    requires: { tools: core.tools, desk: toolServersRef },
    register (ctx) {
      catalogue = ctx.services.tools
      desk = ctx.services.desk
    }
  })
  const { files = {}, plugins = [], ...rest } = options
  const gateway = await createTestGateway({
    env: { PATH: process.env.PATH, SECRET_OF_THE_GATEWAY: 'hidden' },
    ...rest,
    plugins: [toolServers, inside, ...plugins],
    files: {
      'etc/svc/svc.toml': '[slots]\nautostart = false\n[runtime]\ndriver = "process"\n',
      ...Object.fromEntries(Object.entries(servers).map(([id, text]) => [`etc/svc/mcp-servers/${id}.toml`, text])),
      ...files
    }
  })
  t.teardown(() => gateway.close())
  const call: Hosted['call'] = (server, tool, args = {}, signal = new AbortController().signal) =>
    catalogue.call(server, tool, { ...args }, { actor: 'mcp:tester', agent: 'tester', signal })
  return {
    ...gateway,
    catalogue,
    desk,
    call,
    async reaches (id, state) {
      const over = new AbortController()
      const events = gateway.gateway.kernel().events.subscribe({ type: 'mcp.server.state' }, over.signal)
      const next = events[Symbol.asyncIterator]()
      while (desk.get(id).status.state !== state) await next.next()
      over.abort()
    },
    async text (server, tool, args) {
      const outcome = await call(server, tool, args)
      if (outcome.kind !== 'content') throw new Error(`${outcome.kind}: ${outcome.kind === 'failed' ? outcome.error.message : ''}`)
      return (outcome.content.content[0] as { text: string }).text
    }
  }
}
