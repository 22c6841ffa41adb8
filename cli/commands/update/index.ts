import { Option, type Command } from 'commander'
import type { Cli } from '../../cli.js'
import type { ApiClient } from '../../client.js'
import { examples } from '../../help.js'
import { updateCheckSchema, updateStateSchema, type UpdateCheck } from './update-record.js'

interface UpdateOptions {
  readonly channel?: string
  readonly target?: string
  readonly json?: true
}

/** Longer than the gateway waits for the channel. */
const CHECK_MS = 30_000

export function addUpdateCommand (program: Command, cli: Cli): void {
  program.command('update')
    .description('look for a newer release of the gateway')
    .option('--check', 'only look; changes nothing')
    .addOption(new Option('--channel <name>', 'use this channel from now on').choices(['stable', 'nightly']))
    .option('--target <version>', 'this version in place of the newest')
    .option('--json', 'print the answer of the API')
    .addHelpText('after', examples('svc update --check', 'svc update --check --channel nightly'))
    .action(async (options: UpdateOptions, command: Command) => {
      const client = cli.client(command)
      const { channel, target, json } = options
      if (channel !== undefined) await client.raw({ method: 'PUT', path: '/api/updates/channel', body: { channel } })
      const answer = await client.raw({ path: '/api/updates/check', query: target === undefined ? {} : { version: target }, timeoutMs: CHECK_MS })
      if (json === true) return cli.out.json(answer)
      await printCheck(cli, client, updateCheckSchema.parse(answer))
    })
}

async function printCheck (cli: Cli, client: ApiClient, check: UpdateCheck): Promise<void> {
  const { installation } = await client.call({ path: '/api/updates/state' }, updateStateSchema)
  const { manifest, current, latest, channel, update_available: available, blocked } = check
  cli.out.pairs([
    ['Current', current],
    ['Latest', manifest.released_at === undefined ? latest : `${latest} (${manifest.released_at})`],
    ['Channel', channel],
    ['Available', available ? 'yes' : 'no'],
    ['Notes', manifest.notes_url ?? null]
  ])
  if (blocked !== null) cli.out.line(`Not installed: ${blocked}.`)
  if (installation.advice !== null && available) cli.out.line(`This installation does not update itself: ${installation.advice}.`)
}
