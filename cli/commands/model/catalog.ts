import { Option, type Command } from 'commander'
import { z } from 'zod'
import { modelCapabilities } from '../../../kernel/contract/schemas/index.js'
import type { Cli } from '../../cli.js'
import { examples } from '../../terminal/help.js'
import { sizeText } from '../../terminal/size-text.js'
import type { Column } from '../../terminal/table.js'

const entrySchema = z.looseObject({
  id: z.string(),
  capability: z.string().default(''),
  description: z.string().default(''),
  size_gb: z.number().default(0),
  license: z.string().default(''),
  installed: z.boolean().default(false),
  bundle_only: z.boolean().default(false),
  fit: z.looseObject({ status: z.string(), device: z.string().nullish(), reasons: z.array(z.string()).default([]) }).nullish()
})

type Entry = z.output<typeof entrySchema>

const catalogSchema = z.looseObject({ pullable: z.array(entrySchema) })

const fitWords: Readonly<Record<string, string>> = {
  fits: 'fits', tight: 'tight', spills: 'partly in RAM', too_large: 'too large', unsupported: 'no engine', unknown: 'unknown'
}

const columns: ReadonlyArray<Column<Entry>> = [
  { title: 'ID', cell: ({ id }) => id },
  { title: 'FOR', cell: ({ capability }) => capability },
  { title: 'SIZE', cell: ({ size_gb: gigabytes }) => gigabytes === 0 ? '-' : sizeText(gigabytes * 1e9) },
  { title: 'FIT', cell: entry => fitText(entry) },
  { title: 'LICENCE', cell: ({ license }) => license || '-', expendable: 2 },
  { title: 'DESCRIPTION', cell: ({ description }) => description, flexible: true, expendable: 1 }
]

interface CatalogOptions { readonly for?: string, readonly json?: true }

const NOTE = 'FIT compares a model with the memory of this machine: "tight" leaves little room for a long ' +
  'context, "partly in RAM" is more than the GPU has for itself, and slow.'

export function addModelCatalog (model: Command, cli: Cli): void {
  model.command('catalog')
    .description('list models that are known to work well, and how each fits this machine')
    .addOption(new Option('--for <what>', 'only models of one kind').choices(modelCapabilities))
    .option('--json', 'print the API response')
    .addHelpText('after', `\n${NOTE}`)
    .addHelpText('after', examples('svc model catalog', 'svc model catalog --for embed'))
    .action(async (options: CatalogOptions, command: Command) => {
      const client = cli.client(command)
      const call = { path: '/api/models/catalogue' }
      if (options.json === true) return cli.out.json(await client.raw(call))
      const { pullable } = await client.call(call, catalogSchema)
      const rows = pullable.filter(entry => !entry.bundle_only && (options.for === undefined || entry.capability === options.for))
      if (rows.length === 0) return cli.out.line('No such model in the catalogue. Search the hub: svc model search <words>')
      cli.out.table(columns, rows)
      const example = rows.find(entry => !entry.installed && entry.fit?.status === 'fits')?.id
      cli.out.note(`\n${example === undefined ? '' : `Get one: svc model pull ${example}\n`}Find others: svc model search <words>`)
    })
}

function fitText ({ installed, fit }: Entry): string {
  if (installed) return 'installed'
  return fit == null ? '-' : fitWords[fit.status] ?? fit.status
}
