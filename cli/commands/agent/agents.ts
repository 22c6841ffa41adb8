import type { Command } from 'commander'
import type { Cli } from '../../cli.js'
import { examples } from '../../terminal/help.js'
import { pathTo } from '../../program-path.js'
import { harmless } from '../../terminal/text-width.js'
import { agentListSchema } from '../../record/agent-record.js'

export function addAgentList (agent: Command, cli: Cli): void {
  agent.command('list')
    .description('list the agents that can be run on this gateway')
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc agent list'))
    .action(async ({ json }: { json?: true }, command: Command) => {
      const client = cli.client(command)
      const call = { path: '/api/agents' }
      if (json === true) return cli.out.json(await client.raw(call))
      const { agents, known } = await client.call(call, agentListSchema)
      const rows = await Promise.all(known.map(async each => ({ ...each, found: await pathTo(each.program, cli.env) })))
      cli.out.table([
        { title: 'NAME', cell: ({ name }) => harmless(name) },
        { title: 'PROGRAM', cell: ({ found, program }) => harmless(found ?? `${program}, not on PATH`) },
        {
          title: 'INSTALLED',
          cell: ({ name }) => {
            const own = agents.find(each => each.name === name)
            return own === undefined ? '-' : harmless(own.status === 'installed' ? own.version ?? own.form : own.status)
          }
        },
        { title: 'DESCRIPTION', cell: ({ description }) => harmless(description), flexible: true }
      ], rows)
      cli.out.note('Run one: svc agent run <name> -- <arguments>; or write its configuration: svc agent connect <name>')
    })
}
