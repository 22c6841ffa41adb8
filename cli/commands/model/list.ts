import type { Command } from 'commander'
import type { Cli } from '../../cli.js'
import { examples } from '../../terminal/help.js'
import { sizeText } from '../../terminal/size-text.js'
import type { Column } from '../../terminal/table.js'
import { modelListSchema, type ModelRecord } from '../../record/model-record.js'

const columns: ReadonlyArray<Column<ModelRecord>> = [
  { title: 'ID', cell: ({ id }) => id },
  { title: 'NAME', cell: ({ name }) => name ?? '', flexible: true, expendable: 2 },
  { title: 'TYPE', cell: ({ type }) => type ?? '-', expendable: 1 },
  { title: 'QUANT', cell: ({ quant }) => quant || '-', expendable: 3 },
  { title: 'UPSTREAM', cell: ({ upstream, installed, owned_by: owner }) => upstream ?? (owner === 'local' && !installed ? 'local, file gone' : 'local') },
  { title: 'SIZE', cell: ({ size_bytes: size }) => size == null || size === 0 ? '-' : sizeText(size) }
]

export function addModelList (model: Command, cli: Cli): void {
  model.command('list')
    .description('list registered models, and those of upstreams')
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc model list'))
    .action(async (options: { json?: true }, command: Command) => {
      const client = cli.client(command)
      const call = { path: '/api/models' }
      if (options.json === true) return cli.out.json(await client.raw(call))
      const { models } = await client.call(call, modelListSchema)
      if (models.length > 0) return cli.out.table(columns, models)
      cli.out.line('There are no models. See what is available: svc model catalog')
    })
}
