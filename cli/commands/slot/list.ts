import type { Command } from 'commander'
import type { Cli } from '../../cli.js'
import { examples } from '../../help.js'
import { slotListSchema } from '../../slot-record.js'
import { printSlots } from '../../slot-table.js'

export function addSlotList (slot: Command, cli: Cli): void {
  slot.command('list')
    .description('list slots and upstreams')
    .option('--json', 'print the answer of the API')
    .addHelpText('after', examples('svc slot list'))
    .action(async (options: { json?: true }, command: Command) => {
      const client = cli.client(command)
      const call = { path: '/api/slots' }
      if (options.json === true) return cli.out.json(await client.raw(call))
      const records = await client.call(call, slotListSchema)
      if (records.length > 0) return printSlots(cli.out, records)
      cli.out.line('There are no slots. Make one: svc slot create agent --model <model>')
    })
}
