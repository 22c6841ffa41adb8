import type { Command } from 'commander'
import { z } from 'zod'
import type { Cli } from '../../cli.js'
import { pathOf } from '../../client/client.js'
import { examples } from '../../terminal/help.js'
import { harmless } from '../../terminal/text-width.js'
import { oneServerSchema, serverSchema, stateColour, toolCount } from './server-record.js'

export function addMcpList (mcp: Command, cli: Cli): void {
  mcp.command('list')
    .description('list tool servers: the gateway\'s own and installed ones')
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc mcp list'))
    .action(async (options: { json?: true }, command: Command) => {
      const client = cli.client(command)
      const call = { path: '/api/mcp/servers' }
      if (options.json === true) return cli.out.json(await client.raw(call))
      const { servers } = await client.call(call, z.looseObject({ servers: z.array(serverSchema) }))
      cli.out.table([
        { title: 'ID', cell: ({ id }) => harmless(id) },
        { title: 'STATE', cell: ({ state }) => state, paint: (text, { state }) => cli.out.paint(stateColour(state), text) },
        { title: 'TOOLS', cell: toolCount },
        { title: 'PROVIDER', cell: ({ provider }) => harmless(provider), expendable: 1 },
        { title: 'BUNDLED', cell: ({ bundled }) => bundled ? 'yes' : 'no', expendable: 2 },
        { title: 'NAME', cell: ({ name }) => harmless(name), flexible: true }
      ], servers)
      for (const { id, error } of servers) if (error != null) cli.out.line(harmless(`${id}: ${error}`))
    })
}

export function addMcpStatus (mcp: Command, cli: Cli): void {
  mcp.command('status <id>')
    .description('show a tool server, with its tools')
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc mcp status svc-admin'))
    .action(async (id: string, options: { json?: true }, command: Command) => {
      const client = cli.client(command)
      const call = { path: pathOf`/api/mcp/${id}` }
      if (options.json === true) return cli.out.json(await client.raw(call))
      const { server } = await client.call(call, oneServerSchema)
      cli.out.pairs([
        ['id', server.id],
        ['name', harmless(server.name)],
        ['state', server.state],
        ['error', server.error == null ? null : harmless(server.error)],
        ['spec', server.spec == null || server.spec === '' ? null : harmless(server.spec)],
        ['version', server.version == null ? null : harmless(server.version)],
        ['protocol', server.protocol ?? null],
        ['address', server.connect_url ?? null],
        ['tools', toolCount(server)],
        ['resources', server.resources === 0 ? null : String(server.resources)],
        ['prompts', server.prompts === 0 ? null : String(server.prompts)],
        ['clients', server.connected.length === 0 ? null : harmless(server.connected.join(', '))]
      ])
      if (server.tool_details.length > 0) {
        cli.out.line()
        cli.out.table([
          { title: 'TOOL', cell: ({ name }) => harmless(name) },
          { title: 'APPROVAL', cell: ({ gated }) => gated ? 'waits' : '-' },
          { title: 'DESCRIPTION', cell: ({ description }) => harmless(description.split('\n')[0]!), flexible: true }
        ], server.tool_details)
      }
      for (const { name, reason } of server.dropped_tools) cli.out.line(harmless(`Tool ${name} is not offered: ${reason}`))
    })
}

const logsSchema = z.looseObject({ events: z.array(z.looseObject({ ts: z.string(), kind: z.string(), message: z.string() })) })

export function addMcpLogs (mcp: Command, cli: Cli): void {
  mcp.command('logs <id>')
    .description('show the output, events and calls of a tool server')
    .option('-n, --lines <n>', 'number of lines, at most 500', '100')
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc mcp logs notes', 'svc mcp logs notes -n 20'))
    .action(async (id: string, { lines, json }: { lines: string, json?: true }, command: Command) => {
      const client = cli.client(command)
      const call = { path: pathOf`/api/mcp/${id}/logs`, query: { limit: lines } }
      if (json === true) return cli.out.json(await client.raw(call))
      const { events } = await client.call(call, logsSchema)
      if (events.length === 0) return cli.out.line('Nothing to show yet.')
      cli.out.lines(events.map(({ ts, kind, message }) => harmless(`${ts} ${kind.padEnd(6)} ${message}`)))
    })
}
