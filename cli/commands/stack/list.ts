import type { Command } from 'commander'
import { z } from 'zod'
import type { Cli } from '../../cli.js'
import { pathOf } from '../../client/client.js'
import { examples } from '../../terminal/help.js'
import { driftText, stackRecordSchema, type StackRow } from '../../record/stack-record.js'

export function addStackList (stack: Command, cli: Cli): void {
  stack.command('list')
    .description('list stacks; built-in ones cannot be changed')
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc stack list'))
    .action(async (options: { json?: true }, command: Command) => {
      const client = cli.client(command)
      const call = { path: '/api/stacks' }
      if (options.json === true) return cli.out.json(await client.raw(call))
      const { stacks } = await client.call(call, z.looseObject({ stacks: z.array(stackRecordSchema) }))
      cli.out.table([
        { title: 'SLUG', cell: ({ slug }) => slug },
        { title: 'STATE', cell: driftText },
        { title: 'BUILT IN', cell: ({ seed }) => seed ? 'yes' : '-', expendable: 2 },
        { title: 'SLOTS', cell: ({ slots }) => slots.map(({ slot }) => slot).join(', ') || '-', flexible: true },
        { title: 'WHAT FOR', cell: ({ name, description }) => description || name, flexible: true, expendable: 1 }
      ], stacks)
    })
}

export function addStackShow (stack: Command, cli: Cli): void {
  stack.command('show <slug>')
    .description('show everything about a stack')
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc stack show saber'))
    .action(async (slug: string, options: { json?: true }, command: Command) => {
      const client = cli.client(command)
      const call = { path: pathOf`/api/stacks/${slug}` }
      if (options.json === true) return cli.out.json(await client.raw(call))
      const record = await client.call(call, stackRecordSchema)
      cli.out.pairs([
        ['slug', record.slug],
        ['name', record.name],
        ['built in', record.seed ? 'yes' : null],
        ['state', record.active ? driftText(record) : null],
        ['what for', record.description],
        ['author', record.author],
        ['tags', record.tags.join(', ')]
      ])
      if (record.slots.length === 0) return
      cli.out.line()
      cli.out.table([
        { title: 'SLOT', cell: ({ slot }) => slot },
        { title: 'MODEL', cell: ({ model }) => model ?? '-', flexible: true },
        { title: 'DEVICE', cell: ({ device }) => device ?? '-', expendable: 1 },
        { title: 'PROFILE', cell: ({ profile }) => profile ?? '-', expendable: 2 }
      ], record.slots.flatMap(rowsOf))
    })
}

/** What a capability is served by stands below the slot that brings it along. */
function rowsOf (row: StackRow): Array<Pick<StackRow, 'slot' | 'model' | 'device' | 'profile'>> {
  const children = row.capabilities.map(({ child, model, device, enabled }) =>
    ({ slot: `+ ${child}`, model: enabled ? model : 'off', device, profile: null }))
  return [row, ...children]
}
