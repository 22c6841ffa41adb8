import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Command } from 'commander'
import type { Cli } from '../../cli.js'
import { pathOf } from '../../client/client.js'
import { examples } from '../../terminal/help.js'
import { mergeConnection } from '../mcp/config-merge.js'
import { connectionOf, mcpClients, type McpClient } from '../mcp/mcp-clients.js'
import { writeConnections, type Named } from '../mcp/write-connection.js'
import { agentSettingsSchema, type AgentSettingRecord } from '../../record/agent-record.js'

/** Under which name an agent knows the gateway and its tool server. */
const NAME = 'svc'

export function addAgentConnect (agent: Command, cli: Cli): void {
  agent.command('connect <agent>')
    .description('print the configuration that points an agent at the models and tools of this gateway, or write it')
    .option('--write', 'write it to the file; existing entries stay, and a backup is kept')
    .option('--json', 'print files and content as JSON')
    .addHelpText('after', examples('svc agent connect codex', 'svc agent connect opencode --write'))
    .action(async (name: string, { write, json }: { write?: true, json?: true }, command: Command) => {
      const client = cli.client(command)
      const { env } = cli
      const home = env.HOME ?? homedir()
      const { settings, hints } = await client.call({ path: pathOf`/api/agents/${name}/settings`, query: { gateway: client.base } }, agentSettingsSchema)
      const pieces: Named[] = settings.map(setting => pieceOf(setting, home, env))
      if (isMcpClient(name)) {
        pieces.push({ name: NAME, connection: connectionOf({ client: name, name: NAME, url: `${client.base}/mcp/admin`, env, home, platform: process.platform }) })
      }
      const files = new Map<string, Named[]>()
      for (const piece of pieces) files.set(piece.connection.file, [...files.get(piece.connection.file) ?? [], piece])
      const shown = [...files].map(([file, own]) => ({ file, format: own[0]!.connection.format, content: textOf(own) }))
      if (json === true) cli.out.json({ agent: name, files: shown, hints })
      if (write === true) {
        for (const [file, own] of files) await writeConnections(cli, file, own, json === true)
      }
      if (json === true) return
      if (write !== true) {
        for (const { file, content } of shown) cli.out.lines([`For ${file}:`, '', ...content.trimEnd().split('\n'), ''])
      }
      cli.out.lines(hints)
      if (write !== true && files.size > 0) cli.out.line(`\`svc agent connect ${name} --write\` writes it to the file.`)
    })
}

function isMcpClient (name: string): name is McpClient {
  return (mcpClients as readonly string[]).includes(name)
}

/** A file with nothing else in it. */
function textOf (pieces: readonly Named[]): string {
  return pieces.reduce<string | null>((text, { name, connection }) => {
    const merged = mergeConnection(text, name, connection)
    return merged.kind === 'changed' ? merged.text : text
  }, null) ?? ''
}

function pieceOf (setting: AgentSettingRecord, home: string, env: Readonly<Record<string, string | undefined>>): Named {
  const { file, folder, format, path, value, only_if_new: onlyIfNew } = setting
  const told = folder === null ? undefined : env[folder.variable]
  const place = told === undefined || told === '' ? join(home, file) : join(told, folder!.file)
  const name = path.at(-1)!
  const outer = path.slice(0, -1)
  const text = format === 'json' ? `${JSON.stringify(path.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value), null, 2)}\n`
    : format === 'toml' ? tomlTable(path, value) : `${name}:${yamlBlock(value, '  ')}\n`
  return { name, connection: { file: place, format, path: outer, entry: value, text, onlyIfNew } }
}

function tomlTable (path: readonly string[], value: unknown): string {
  const lines = Object.entries(value as object).map(([key, inner]) => `${key} = ${inlineToml(inner)}\n`)
  return `[${path.join('.')}]\n${lines.join('')}`
}

function inlineToml (value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(inlineToml).join(', ')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  return `{ ${Object.entries(value).map(([key, inner]) => `${JSON.stringify(key)} = ${inlineToml(inner)}`).join(', ')} }`
}

/** What follows a key and its colon, or the dash of a list. */
function yamlBlock (value: unknown, indent: string): string {
  if (typeof value !== 'object' || value === null) return ` ${yamlScalar(value)}`
  const deeper = `${indent}  `
  if (Array.isArray(value)) return value.map(each => `\n${indent}-${yamlBlock(each, deeper).replace(/^\n +/, ' ')}`).join('')
  return Object.entries(value).map(([key, inner]) => `\n${indent}${key}:${yamlBlock(inner, deeper)}`).join('')
}

function yamlScalar (value: unknown): string {
  return typeof value === 'string' && /^[a-z][\w./-]*$/i.test(value) && !/^(?:true|false|yes|no|on|off|null|y|n)$/i.test(value) ? value : JSON.stringify(value)
}
