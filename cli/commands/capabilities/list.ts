import type { Command } from 'commander'
import { z } from 'zod'
import type { Cli } from '../../cli.js'
import { examples } from '../../terminal/help.js'

const text = z.string().nullish()
const selectionSchema = z.looseObject({
  device: text, provider: text, model: text, enabled: z.boolean(), slot: z.string(), status: z.string()
})
const answerSchema = z.looseObject({ selections: z.record(z.string(), z.record(z.string(), selectionSchema)) })

export function addCapabilitiesList (capabilities: Command, cli: Cli): void {
  capabilities.command('list')
    .description('list what serves each capability')
    .option('--json', 'print the API response, which also lists what could serve it')
    .addHelpText('after', examples('svc capabilities list', 'svc capabilities list --json | jq .catalogs.embed'))
    .action(async (options: { json?: true }, command: Command) => {
      const client = cli.client(command)
      const call = { path: '/api/capabilities' }
      if (options.json === true) return cli.out.json(await client.raw(call))
      const { selections } = await client.call(call, answerSchema)
      const rows = Object.values(selections).flatMap(children =>
        Object.entries(children).map(([child, selection]) => ({ child, ...selection })))
      cli.out.table([
        { title: 'NAME', cell: ({ child }) => child },
        { title: 'ON', cell: ({ enabled }) => enabled ? 'yes' : 'no', paint: (cell, { enabled }) => cli.out.paint(enabled ? 'green' : 'dim', cell) },
        { title: 'MODEL', cell: ({ model }) => model ?? '-', flexible: true },
        { title: 'DEVICE', cell: ({ device }) => device ?? '-' },
        { title: 'ENGINE', cell: ({ provider }) => provider ?? '-', expendable: 2 },
        { title: 'SLOT', cell: ({ slot }) => slot, expendable: 1 },
        { title: 'STATE', cell: ({ status }) => status }
      ], rows)
    })
}
