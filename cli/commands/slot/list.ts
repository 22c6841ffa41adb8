import type { Command } from 'commander'
import type { Cli } from '../../cli.js'
import { examples } from '../../terminal/help.js'
import { slotListSchema } from '../../record/slot-record.js'
import { harmless } from '../../terminal/text-width.js'
import { printSlots, providerProblems, pullProblems, remoteProblems, unreadProblems } from '../../record/slot-table.js'

export function addSlotList (slot: Command, cli: Cli): void {
  slot.command('list')
    .description('list slots and upstreams')
    .option('--remote', 'include slots of upstreams that are gateways')
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc slot list', 'svc slot list --remote'))
    .action(async (options: { json?: true, remote?: true }, command: Command) => {
      const client = cli.client(command)
      const call = { path: options.remote === true ? '/api/slots?remote=true' : '/api/slots' }
      if (options.json === true) return cli.out.json(await client.raw(call))
      const records = await client.call(call, slotListSchema)
      if (records.length === 0) return cli.out.line('There are no slots. Create one: svc slot create agent --model <model>')
      printSlots(cli.out, records)
      for (const record of records) {
        const problems = [providerProblems, pullProblems, unreadProblems, remoteProblems].flatMap(find => find(record))
        for (const problem of problems) cli.out.line(harmless(`${record.name}: ${problem}`))
      }
    })
}
