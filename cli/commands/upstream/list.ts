import type { Command } from 'commander'
import { z } from 'zod'
import type { Cli } from '../../cli.js'
import { pathOf } from '../../client/client.js'
import { examples } from '../../terminal/help.js'
import { harmless } from '../../terminal/text-width.js'
import { fileProblems } from '../../record/diagnostics.js'
import { keyOf, problemsOf, stateOf, upstreamSchema } from '../../record/upstream-record.js'

export function addUpstreamList (upstream: Command, cli: Cli): void {
  upstream.command('list')
    .description('list remote providers and their states')
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc upstream list'))
    .action(async (options: { json?: true }, command: Command) => {
      const client = cli.client(command)
      const call = { path: '/api/upstreams' }
      if (options.json === true) return cli.out.json(await client.raw(call))
      const records = await client.call(call, z.array(upstreamSchema))
      // a row that is invalid is no upstream, and in no list of them
      const unread = (await fileProblems(client, 'upstreams.toml')).map(harmless)
      if (records.length === 0) {
        if (unread.length === 0) return cli.out.line('There are no upstreams. Add one: svc upstream add openrouter --template openrouter')
        return cli.out.lines(unread)
      }
      cli.out.table([
        { title: 'NAME', cell: ({ name }) => name },
        { title: 'STATE', cell: record => stateOf(record).word, paint: (text, record) => cli.out.paint(stateOf(record).colour, text) },
        { title: 'MODELS', cell: ({ models }) => String(models.length) },
        { title: 'KEY', cell: keyOf, expendable: 1 },
        { title: 'URL', cell: ({ url }) => url, flexible: true }
      ], records)
      cli.out.lines([...records.flatMap(problemsOf).map(harmless), ...unread])
    })
}

export function addUpstreamShow (upstream: Command, cli: Cli): void {
  upstream.command('show <name>')
    .description('show a remote provider and its models')
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc upstream show openrouter'))
    .action(async (name: string, options: { json?: true }, command: Command) => {
      const client = cli.client(command)
      const call = { path: pathOf`/api/upstreams/${name}` }
      if (options.json === true) return cli.out.json(await client.raw(call))
      const record = await client.call(call, upstreamSchema)
      cli.out.pairs([
        ['name', record.name],
        ['state', stateOf(record).word],
        ['url', record.url],
        ['auth', record.auth_style],
        ['key', keyOf(record)],
        ['file', record.source ?? null],
        ['timeout', record.timeout_seconds == null ? null : `${record.timeout_seconds} s`],
        ['retries', record.retries === 0 ? null : String(record.retries)],
        ['fallback', record.fallback.length === 0 ? null : record.fallback.join(', ')],
        ['models', String(record.models.length)]
      ])
      cli.out.lines(record.models.map(model => `  ${harmless(model)}`))
      for (const problem of problemsOf(record)) cli.out.line(harmless(problem))
    })
}
