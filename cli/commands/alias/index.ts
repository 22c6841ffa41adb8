import type { Command } from 'commander'
import { z } from 'zod'
import type { Cli } from '../../cli.js'
import type { ApiClient } from '../../client/client.js'
import { CliFailure } from '../../failure.js'
import { examples } from '../../terminal/help.js'
import { harmless } from '../../terminal/text-width.js'

const settingsSchema = z.looseObject({ aliases: z.record(z.string(), z.string()).default({}) })
const modelsSchema = z.looseObject({
  data: z.array(z.looseObject({ id: z.string(), status: z.string().optional().catch(undefined) }))
})

export function addAliasCommands (program: Command, cli: Cli): void {
  const alias = program.command('alias').description('manage aliases: other names that clients may use for models')
  addAliasList(alias, cli)
  addAliasSet(alias, cli)
  addAliasRemove(alias, cli)
}

function addAliasList (alias: Command, cli: Cli): void {
  alias.command('list')
    .description('list aliases and their targets')
    .option('--json', 'print them as an object')
    .addHelpText('after', examples('svc alias list'))
    .action(async (options: { json?: true }, command: Command) => {
      const client = cli.client(command)
      const aliases = await aliasesOf(client)
      if (options.json === true) return cli.out.json(aliases)
      const rows = Object.entries(aliases)
      if (rows.length === 0) return cli.out.line('There are no aliases. Add one: svc alias set gpt-4.1 agent')
      const { data } = await client.call({ path: '/v1/models' }, modelsSchema)
      const known = new Map(data.map(({ id, status }) => [id, status ?? 'remote']))
      cli.out.table([
        { title: 'ALIAS', cell: ([name]) => harmless(name) },
        { title: 'LEADS TO', cell: ([, target]) => harmless(target), flexible: true },
        { title: 'STATUS', cell: ([name]) => known.get(name) ?? 'leads nowhere' }
      ], rows)
    })
}

function addAliasSet (alias: Command, cli: Cli): void {
  alias.command('set <name> <target>')
    .description('let clients call a slot, svc/* name, model or <upstream>/<model> by another name; takes effect at once')
    .addHelpText('after', examples('svc alias set gpt-4.1 agent', 'svc alias set qwen3:4b qwen3-4b-q4', 'svc alias set sonnet openrouter/anthropic/claude-sonnet'))
    .action(async (name: string, target: string, _options: unknown, command: Command) => {
      const client = cli.client(command)
      await save(client, { [name]: target })
      cli.out.line(`${name} now stands for ${target}.`)
      const { data } = await client.call({ path: '/v1/models' }, modelsSchema)
      if (!data.some(({ id }) => id === name)) cli.out.line(`${target} does not exist yet: requests for ${name} are refused until it does.`)
    })
}

function addAliasRemove (alias: Command, cli: Cli): void {
  alias.command('rm <name>')
    .alias('remove')
    .description('remove an alias; its target stays')
    .addHelpText('after', examples('svc alias rm gpt-4.1'))
    .action(async (name: string, _options: unknown, command: Command) => {
      const client = cli.client(command)
      if (!Object.hasOwn(await aliasesOf(client), name)) throw new CliFailure(`there is no alias ${name}`, { hints: ['`svc alias list` shows all aliases.'] })
      await save(client, { [name]: null })
      cli.out.line(`Alias ${name} is removed.`)
    })
}

async function aliasesOf (client: ApiClient): Promise<Readonly<Record<string, string>>> {
  return (await client.call({ path: '/api/settings' }, settingsSchema)).aliases
}

async function save (client: ApiClient, aliases: Readonly<Record<string, string | null>>): Promise<void> {
  await client.call({ method: 'PATCH', path: '/api/settings', body: { aliases } }, z.unknown())
}
