import type { Command } from 'commander'
import { z } from 'zod'
import type { Cli } from '../../cli.js'
import { examples } from '../../terminal/help.js'
import { harmless } from '../../terminal/text-width.js'

const catalogSchema = z.looseObject({
  items: z.array(z.looseObject({ id: z.string(), description: z.string(), category: z.string(), spec: z.string() }))
})

export function addMcpCatalog (mcp: Command, cli: Cli): void {
  const catalog = mcp.command('catalog').description('tool servers that can be installed')
  catalog.command('list [words]')
    .description('list them all, or only those that match a word')
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc mcp catalog list', 'svc mcp catalog list github'))
    .action(async (words: string | undefined, options: { json?: true }, command: Command) => {
      const client = cli.client(command)
      const call = { path: '/api/mcp/catalog', ...(words === undefined ? {} : { query: { search: words } }) }
      if (options.json === true) return cli.out.json(await client.raw(call))
      const { items } = await client.call(call, catalogSchema)
      if (items.length === 0) return cli.out.line('No tool servers found. `svc mcp catalog refresh` loads more from the registry.')
      cli.out.table([
        { title: 'SPEC', cell: ({ spec }) => harmless(spec) },
        { title: 'CATEGORY', cell: ({ category }) => harmless(category), expendable: 1 },
        { title: 'DESCRIPTION', cell: ({ description }) => harmless(description.split('\n')[0]!), flexible: true }
      ], items)
    })
  catalog.command('refresh')
    .description('reload the registry')
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc mcp catalog refresh'))
    .action(async (options: { json?: true }, command: Command) => {
      const answer = await cli.client(command).raw({ method: 'POST', path: '/api/mcp/catalog/refresh', timeoutMs: null })
      if (options.json === true) return cli.out.json(answer)
      const { items } = z.looseObject({ items: z.number() }).parse(answer)
      cli.out.line(`The registry has ${items} tool server${items === 1 ? '' : 's'} that can be installed here.`)
    })
}
