import type { Command } from 'commander'
import type { Cli } from '../../cli.js'
import { examples } from '../../terminal/help.js'
import { harmless } from '../../terminal/text-width.js'
import { listCards } from '../../agent/identity-card.js'

export function addAgentPeers (agent: Command, cli: Cli): void {
  agent.command('peers')
    .description('list the agents that announced themselves in the memory')
    .option('--json', 'print their entries in the memory')
    .addHelpText('after', examples('svc agent peers'))
    .action(async ({ json }: { json?: true }, command: Command) => {
      const cards = await listCards(cli.client(command))
      if (json === true) return cli.out.json(cards)
      if (cards.length === 0) return cli.out.note('No agent has announced itself.')
      cli.out.table([
        { title: 'ID', cell: ({ id }) => harmless(id) },
        { title: 'AGENT', cell: ({ source }) => harmless(source ?? '-'), expendable: 1 },
        { title: 'SINCE', cell: ({ timestamp }) => timestamp.slice(0, 10), expendable: 2 },
        { title: 'SAYS', cell: ({ text }) => harmless(text), flexible: true }
      ], cards)
    })
}
