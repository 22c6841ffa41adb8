import { Option, type Command } from 'commander'
import { z } from 'zod'
import type { Cli } from '../../cli.js'
import { pathOf, type ApiClient } from '../../client/client.js'
import { examples } from '../../terminal/help.js'
import { numberOf } from '../../option-value.js'
import { harmless } from '../../terminal/text-width.js'

const logsSchema = z.looseObject({
  logs: z.union([z.array(z.string()), z.string().transform(text => text.split('\n'))]),
  hint: z.string().optional()
})
const degradedSchema = z.looseObject({ message: z.string() })
const lineCount = z.int().min(1).max(5000)

export function addSlotLogs (slot: Command, cli: Cli): void {
  slot.command('logs <name>')
    .description('print the output of a slot\'s engine')
    .option('-f, --follow', 'keep printing new lines until interrupted')
    .addOption(new Option('-n, --lines <count>', 'number of last lines').argParser(numberOf(lineCount)).default(200))
    .addHelpText('after', examples('svc slot logs agent -n 50', 'svc slot logs agent --follow'))
    .action(async (name: string, options: { follow?: true, lines: number }, command: Command) => {
      const client = cli.client(command)
      if (options.follow === true) return await follow(cli, client, name, options.lines)
      const { logs, hint } = await client.call({ path: pathOf`/api/slots/${name}/logs`, query: { lines: options.lines } }, logsSchema)
      cli.out.lines(logs.map(harmless))
      if (hint !== undefined) cli.out.note(hint)
    })
}

async function follow ({ out, signal }: Cli, client: ApiClient, name: string, lines: number): Promise<void> {
  for await (const { event, data } of client.events({ path: pathOf`/api/slots/${name}/logs/stream`, query: { backfill: lines } })) {
    const value: unknown = JSON.parse(data)
    if (event === 'degraded') out.note(degradedSchema.safeParse(value).data?.message ?? data)
    else await out.write(`${harmless(typeof value === 'string' ? value : data)}\n`, signal)
  }
}
