import type { Command } from 'commander'
import { z } from 'zod'
import type { Cli } from '../../cli.js'
import { ApiFailure } from '../../client/api-failure.js'
import { pathOf, type ApiClient } from '../../client/client.js'
import { shellText } from '../../../kernel/contract/text/shell-words.js'
import { confirm } from '../../terminal/confirm.js'
import { CliFailure, usageFailure } from '../../failure.js'
import { examples } from '../../terminal/help.js'
import { harmless } from '../../terminal/text-width.js'
import { oneServerSchema, serverSchema } from './server-record.js'

interface InstallOptions {
  readonly id?: string
  readonly env?: readonly string[]
  readonly secret?: readonly string[]
  readonly arg?: readonly string[]
  readonly direct?: true
  readonly start: boolean
  readonly json?: true
}

const installedSchema = z.looseObject({ installed: serverSchema, env_missing: z.array(z.string()) })
const testedSchema = z.looseObject({ ok: z.boolean(), tools: z.number().nullable(), error: z.string().nullable() })

export function addMcpInstall (mcp: Command, cli: Cli): void {
  mcp.command('install <spec>')
    .description('install a tool server: npm:<package>, uvx:<package>, oci://<image>, or the address of a server or its manifest')
    .option('--id <id>', 'id; default is made from its name')
    .option('-e, --env <name=value...>', 'environment variables')
    .option('-s, --secret <name=key...>', 'variables, or headers for an address, that are filled from a key of api.env')
    .option('-a, --arg <text...>', 'its arguments')
    .option('--direct', 'connect to the address without probing it first; for servers in private networks')
    .option('--no-start', 'do not wait for its list of tools')
    .option('--json', 'print the API response')
    .addHelpText('after', examples(
      'svc mcp install npm:@modelcontextprotocol/server-everything', 'svc mcp install uvx:acme-notes --secret NOTES_TOKEN=ACME_KEY',
      'svc mcp install http://127.0.0.1:3000/mcp --direct --id notes'
    ))
    .action(async (spec: string, { id, env, secret, arg, direct, start, json }: InstallOptions, command: Command) => {
      const client = cli.client(command)
      const body = { ...direct === true ? { manifest: remoteOf(spec, id) } : { spec }, id, env: pairsOf('--env', env), secrets: pairsOf('--secret', secret), args: arg }
      const answer = await install(client, spec, body)
      if (json === true) return cli.out.json(answer)
      const { installed: { id: own }, env_missing: missing } = installedSchema.parse(answer)
      cli.out.line(harmless(`Tool server ${own} is installed.`))
      if (missing.length > 0) cli.out.line(harmless(`It asks for ${missing.join(', ')}: set them in mcp-servers/${own}.toml, or bind secrets there.`))
      if (!start) return
      const tested = await client.call({ method: 'POST', path: pathOf`/api/mcp/${own}/test`, timeoutMs: null }, testedSchema)
      if (!tested.ok) {
        throw new CliFailure(harmless(`it is not running: ${tested.error ?? 'no reason given'}`), {
          hints: [`\`svc mcp logs ${own}\` shows its output, \`svc mcp restart ${own}\` tries again, \`svc mcp uninstall ${own}\` removes it.`]
        })
      }
      cli.out.line(`It runs and offers ${toolsText(tested.tools ?? 0)}. Connect a client: svc mcp connect <client> --server ${own}`)
    })
}

export function addMcpUninstall (mcp: Command, cli: Cli): void {
  mcp.command('uninstall <id>')
    .description('stop a tool server and remove its file')
    .option('-f, --force', 'do not ask; without a terminal svc never does')
    .addHelpText('after', examples('svc mcp uninstall notes'))
    .action(async (id: string, options: { force?: true }, command: Command) => {
      if (options.force !== true && !await confirm(cli, `Uninstall tool server ${id}?`)) throw new CliFailure('nothing was uninstalled')
      await cli.client(command).call({ method: 'DELETE', path: pathOf`/api/mcp/${id}` }, z.unknown())
      cli.out.line(harmless(`Tool server ${id} is uninstalled.`))
    })
}

export function addMcpRestart (mcp: Command, cli: Cli): void {
  mcp.command('restart <id>')
    .description('restart a tool server, without the delay after failures')
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc mcp restart notes'))
    .action(async (id: string, options: { json?: true }, command: Command) => {
      const answer = await cli.client(command).raw({ method: 'POST', path: pathOf`/api/mcp/${id}/restart`, timeoutMs: null })
      if (options.json === true) return cli.out.json(answer)
      const { server } = oneServerSchema.parse(answer)
      cli.out.line(harmless(`Tool server ${id} is ${server.state}, with ${server.tools < 0 ? 'tools that are not known yet' : toolsText(server.tools)}.`))
    })
}

/** The record of a server that is installed without a question. */
function remoteOf (address: string, id: string | undefined): { url: string, transport: string } {
  if (!/^https?:/.test(address)) throw usageFailure('--direct takes the address of a server, http://… or https://…')
  if (id === undefined) throw usageFailure('--direct needs --id <id>: the server is not asked for its name')
  return { url: address, transport: 'streamable-http' }
}

async function install (client: ApiClient, spec: string, body: object): Promise<unknown> {
  try {
    return await client.raw({ method: 'POST', path: '/api/mcp/install', body, timeoutMs: 60_000 })
  } catch (error) {
    if (!(error instanceof ApiFailure) || error.code !== 'mcp.ssrf_blocked') throw error
    throw new CliFailure(error.message, {
      hints: [`If the address is a tool server: \`svc mcp install ${shellText([spec])} --direct --id <id>\``],
      cause: error, ...error.trace === null ? {} : { trace: error.trace }
    })
  }
}

function toolsText (count: number): string {
  return `${count} tool${count === 1 ? '' : 's'}`
}

/** Undefined where nothing was given. */
function pairsOf (option: string, pairs: readonly string[] | undefined): Record<string, string> | undefined {
  if (pairs === undefined) return undefined
  return Object.fromEntries(pairs.map(pair => {
    const at = pair.indexOf('=')
    if (at < 1) throw usageFailure(`${option} takes name=value, such as ${option} MODE=ro`)
    return [pair.slice(0, at), pair.slice(at + 1)]
  }))
}
