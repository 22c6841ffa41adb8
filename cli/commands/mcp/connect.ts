import { homedir } from 'node:os'
import { resolve } from 'node:path'
import { Argument, type Command } from 'commander'
import type { Cli } from '../../cli.js'
import { pathOf } from '../../client/client.js'
import { usageFailure } from '../../failure.js'
import { examples } from '../../terminal/help.js'
import { shellText } from '../../../kernel/contract/text/shell-words.js'
import { connectionOf, mcpClients, type McpClient } from './mcp-clients.js'
import { oneServerSchema } from './server-record.js'
import { writeConnections } from './write-connection.js'

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
    .description('print the configuration that connects a program to the tools of this gateway, or write it')
    .option('--server <id>', 'which tool server', DEFAULT_SERVER)
    .option('--name <name>', 'name of the server in the program', DEFAULT_NAME)
    .option('--write', 'write it to the file; existing entries stay, and a backup is kept')
    .option('--file <path>', 'file to write instead of the usual one')
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
      if (write === true) return await writeConnections(cli, target, [{ name, connection }], json === true)
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
      cli.out.line(`\`svc mcp connect ${client} ${given}--write\` writes it to the file.`)
    })
}
