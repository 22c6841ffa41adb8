import type { Command } from 'commander'
import { z } from 'zod'
import type { Cli } from '../../cli.js'
import { pathOf } from '../../client/client.js'
import { examples } from '../../terminal/help.js'
import { profileRecordSchema, type ProfileRecord } from '../../record/profile-record.js'

export function addProfileList (profile: Command, cli: Cli): void {
  profile.command('list')
    .description('list profiles; built-in ones cannot be changed')
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc profile list'))
    .action(async (options: { json?: true }, command: Command) => {
      const client = cli.client(command)
      const call = { path: '/api/profiles' }
      if (options.json === true) return cli.out.json(await client.raw(call))
      cli.out.table([
        { title: 'NAME', cell: ({ name }) => name },
        { title: 'FOR', cell: runsOn },
        { title: 'MTP', cell: ({ mtp }) => mtp ? 'yes' : '-', expendable: 3 },
        { title: 'BUILT IN', cell: ({ seed }) => seed ? 'yes' : '-', expendable: 2 },
        { title: 'TOKENS/S', cell: ({ tps }) => tps == null ? '-' : tps.toFixed(1), expendable: 4 },
        { title: 'USED BY', cell: ({ used_by: users }) => users.join(', ') || '-', flexible: true },
        { title: 'WHAT FOR', cell: ({ intent }) => intent || '-', flexible: true, expendable: 1 }
      ], await client.call(call, z.array(profileRecordSchema)))
    })
}

export function addProfileShow (profile: Command, cli: Cli): void {
  profile.command('show <name>')
    .description('show everything about a profile')
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc profile show rocm'))
    .action(async (name: string, options: { json?: true }, command: Command) => {
      const client = cli.client(command)
      const call = { path: pathOf`/api/profiles/${name}` }
      if (options.json === true) return cli.out.json(await client.raw(call))
      const record = await client.call(call, profileRecordSchema)
      cli.out.pairs([
        ['name', record.name],
        ['built in', record.seed ? 'yes' : null],
        ['for', runsOn(record)],
        ['image', record.image],
        ['flags', record.flags],
        ['resolved flags', record.resolved_flags === record.flags ? null : record.resolved_flags],
        ['multi-token prediction', record.mtp ? 'yes' : null],
        ['cloned from', record.cloned_from ?? null],
        ['what for', record.intent],
        ['quantisation', record.quant],
        ['tokens/s', record.tps == null ? null : record.tps.toFixed(1)],
        ['used by', record.used_by.join(', ')]
      ])
    })
}

function runsOn ({ device_class: device, backend }: ProfileRecord): string {
  return backend == null ? device : `${device} (${backend})`
}
