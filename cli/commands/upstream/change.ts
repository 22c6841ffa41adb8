import { Option, type Command } from 'commander'
import { z } from 'zod'
import type { Cli } from '../../cli.js'
import { ApiFailure } from '../../client/api-failure.js'
import { pathOf, type ApiClient } from '../../client/client.js'
import { confirm } from '../../terminal/confirm.js'
import { CliFailure, usageFailure } from '../../failure.js'
import { examples } from '../../terminal/help.js'
import { readSecret } from '../../terminal/secret-prompt.js'
import { harmless } from '../../terminal/text-width.js'
import { problemsOf, upstreamSchema } from '../../record/upstream-record.js'
import { addUpstreamOptions, bodyOf, type UpstreamOptions } from './upstream-options.js'

interface AddOptions extends UpstreamOptions {
  readonly template?: string
  readonly svc?: string
}

export function addUpstreamAdd (upstream: Command, cli: Cli): void {
  addUpstreamOptions(upstream.command('add [name] [address]')
    .description('add a remote provider, or another gateway')
    .option('--svc <url>', 'another gateway like this one: its models serve here, and `svc status` shows its slots; named after its host by default')
    .option('-t, --template <id>', 'openai, anthropic, openrouter, google_ai_studio, deepseek, minimax or ollama'))
    .addHelpText('after', examples(
      'svc upstream add openrouter --template openrouter', 'svc upstream add lab http://lab:8080/v1 --auth none --fallback agent',
      'svc upstream add --svc http://workshop:8080'
    ))
    .action(async (given: string | undefined, address: string | undefined, options: AddOptions, command: Command) => {
      const { template, svc } = options
      const name = given ?? (svc === undefined ? undefined : nameOfHost(svc))
      if (name === undefined) throw usageFailure('a name is needed', ['For example: `svc upstream add lab http://lab:8080/v1`.'])
      if (svc !== undefined && (address !== undefined || template !== undefined)) {
        throw usageFailure(`--svc is the address already, and cannot be used with ${address === undefined ? '--template' : `'${address}'`}`)
      }
      if ((address ?? svc ?? template) === undefined) {
        throw usageFailure('an address or a template is needed', ['For example: `svc upstream add lab http://lab:8080/v1` or `--template openai`.'])
      }
      const gateway = svc === undefined ? {} : { svc: true, auth_style: options.keyEnv === undefined ? 'none' : undefined }
      const body = { name, url: address ?? svc, catalog_id: template, ...defined(gateway), ...defined(bodyOf(options)) }
      const record = await sendWithKey(cli, cli.client(command), { method: 'POST', path: '/api/upstreams', body })
      cli.out.line(`Upstream ${name} is added.`)
      const lacksKey = record.auth_configured && !record.auth_key_present
      for (const line of lacksKey ? problemsOf(record) : [`Try it: svc upstream test ${name}`]) cli.out.line(harmless(line))
    })
}

/** `http://192.168.1.20:8080` is 192-168-1-20. */
function nameOfHost (address: string): string {
  if (!URL.canParse(address)) throw usageFailure(`'${address}' is not an address`, ['For example: `svc upstream add --svc http://workshop:8080`.'])
  return new URL(address).hostname.replaceAll(/[^a-z0-9_-]+/g, '-').replaceAll(/^-+|-+$/g, '').slice(0, 64)
}

function defined (members: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined))
}

interface EditOptions extends UpstreamOptions {
  readonly address?: string
  readonly enable?: true
  readonly disable?: true
}

export function addUpstreamEdit (upstream: Command, cli: Cli): void {
  addUpstreamOptions(upstream.command('edit <name>')
    .description('change a remote provider')
    .option('--address <url>', 'its base URL'))
    .addOption(new Option('--enable', 'use it').conflicts('disable'))
    .option('--disable', 'keep it without using it')
    .addHelpText('after', examples('svc upstream edit openrouter --retries 2 --fallback agent', 'svc upstream edit lab --disable'))
    .action(async (name: string, options: EditOptions, command: Command) => {
      if (Object.keys(options).length === 0) throw usageFailure('no changes were given', ['Run `svc upstream edit --help` to see the options.'])
      const enabled = options.enable === true ? true : options.disable === true ? false : undefined
      const body = { url: options.address, enabled, ...bodyOf(options) }
      await sendWithKey(cli, cli.client(command), { method: 'PATCH', path: pathOf`/api/upstreams/${name}`, body })
      cli.out.line(`Upstream ${name} is changed.`)
    })
}

interface Change {
  readonly method: 'POST' | 'PATCH'
  readonly path: string
  readonly body: Readonly<Record<string, unknown>>
}

/** A key that would go to another address has to be given again; it comes from standard input, as in `svc upstream key`. */
async function sendWithKey (cli: Cli, client: ApiClient, change: Change): Promise<z.output<typeof upstreamSchema>> {
  try {
    return await client.call(change, upstreamSchema)
  } catch (error) {
    if (!(error instanceof ApiFailure) || error.code !== 'upstream.key_required') throw error
    cli.out.line('The key would go to another address, so it must be set again.')
    const value = (await readSecret(cli, 'Key: ')).trim()
    if (value === '') throw error
    return await client.call({ ...change, body: { ...change.body, auth_value: value } }, upstreamSchema)
  }
}

const removedSchema = z.looseObject({ hint: z.string().nullish() })

export function addUpstreamRemove (upstream: Command, cli: Cli): void {
  upstream.command('remove <name>')
    .alias('rm')
    .description('remove a remote provider from its file')
    .option('-f, --force', 'do not ask; without a terminal svc never does')
    .addHelpText('after', examples('svc upstream remove lab'))
    .action(async (name: string, options: { force?: true }, command: Command) => {
      if (options.force !== true && !await confirm(cli, `Remove upstream ${name}?`)) throw new CliFailure('nothing was removed')
      const { hint } = await cli.client(command).call({ method: 'DELETE', path: pathOf`/api/upstreams/${name}` }, removedSchema)
      cli.out.line(`Upstream ${name} is removed${hint == null ? '' : `; ${hint}`}.`)
    })
}
