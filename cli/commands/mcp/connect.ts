import { copyFile, mkdir, readFile, realpath, rename, stat, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, resolve } from 'node:path'
import { Argument, type Command } from 'commander'
import type { Cli } from '../../cli.js'
import { pathOf } from '../../client.js'
import { CliFailure, usageFailure } from '../../failure.js'
import { examples } from '../../help.js'
import { messageOf } from '../../../kernel/contract/errors.js'
import { shellText } from '../../../kernel/contract/shell-words.js'
import { mergeConnection } from './config-merge.js'
import { connectionOf, mcpClients, type McpClient } from './mcp-clients.js'
import { oneServerSchema } from './server-record.js'

interface ConnectOptions {
  readonly server: string
  readonly name: string
  readonly write?: true
  readonly file?: string
  readonly json?: true
}

const DEFAULT_SERVER = 'admin'
const DEFAULT_NAME = 'svc'

export function addMcpConnect (mcp: Command, cli: Cli): void {
  mcp.command('connect')
    .addArgument(new Argument('<client>', 'the program').choices(mcpClients))
    .description('print what makes a program use the tools of this gateway, or write it to its configuration')
    .option('--server <id>', 'which tool server', DEFAULT_SERVER)
    .option('--name <name>', 'under which the program knows it', DEFAULT_NAME)
    .option('--write', 'write it; what is there stays, and a copy of it is kept')
    .option('--file <path>', 'another file than the usual one')
    .option('--json', 'print client, file and content as JSON')
    .addHelpText('after', examples('svc mcp connect claude-code', 'svc mcp connect codex --write', 'svc mcp connect cursor --server notes --name notes --write'))
    .action(async (client: McpClient, { server, name, write, file, json }: ConnectOptions, command: Command) => {
      if (!/^[\w-]{1,32}$/.test(name)) throw usageFailure('a name has letters, digits, - and _, at most 32')
      const api = cli.client(command)
      await api.call({ path: pathOf`/api/mcp/${server}` }, oneServerSchema)
      const { env } = cli
      const connection = connectionOf({
        client, name, url: `${api.base}/mcp/${server.replace(/^svc-/, '')}`, env, home: env.HOME ?? homedir(), platform: process.platform
      })
      const target = file === undefined ? connection.file : resolve(cli.process.cwd(), file)
      if (json === true) cli.out.json({ client, file: target, format: connection.format, content: connection.text })
      if (write === true) return await writeConnection(cli, target, name, connection, json === true)
      if (json === true) return
      cli.out.line(`For ${target}:`)
      cli.out.line()
      cli.out.lines(connection.text.trimEnd().split('\n'))
      cli.out.line()
      const given = [
        ...server === DEFAULT_SERVER ? [] : [`--server ${server}`],
        ...name === DEFAULT_NAME ? [] : [`--name ${name}`],
        ...file === undefined ? [] : [`--file ${shellText([file])}`]
      ].map(option => `${option} `).join('')
      cli.out.line(`\`svc mcp connect ${client} ${given}--write\` writes it there.`)
    })
}

async function writeConnection (
  cli: Cli, file: string, name: string, connection: ReturnType<typeof connectionOf>, isQuiet: boolean
): Promise<void> {
  try {
    // a configuration that is kept elsewhere, and linked to, stays a link
    const target = await realpath(file).catch(() => file)
    const before = await readFile(target, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return null
      throw error
    })
    const merged = mergeConnection(before, name, connection)
    if (merged.kind === 'refused') {
      throw new CliFailure(`${file} was left as it is: ${merged.why}`, {
        hints: ['Add this by hand:', ...connection.text.trimEnd().split('\n')]
      })
    }
    if (merged.kind === 'same') return isQuiet ? undefined : cli.out.line(`${file} has it already.`)
    await mkdir(dirname(target), { recursive: true })
    if (before !== null) await copyFile(target, `${target}.svc-backup`)
    const mode = before === null ? 0o600 : (await stat(target)).mode & 0o777
    await writeFile(`${target}.svc-new`, merged.text, { mode })
    await rename(`${target}.svc-new`, target)
    if (isQuiet) return
    cli.out.line(`${file} is written${before === null ? '' : `; as it was: ${target}.svc-backup`}.`)
  } catch (error) {
    if (error instanceof CliFailure) throw error
    throw new CliFailure(`${file} cannot be written: ${messageOf(error)}`)
  }
}
