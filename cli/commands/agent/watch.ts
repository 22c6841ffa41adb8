import type { Command } from 'commander'
import type { Cli } from '../../cli.js'
import { examples } from '../../terminal/help.js'
import { oneLine, harmless } from '../../terminal/text-width.js'
import { approvalEventSchema, shortId, summaryOf } from './approval-record.js'

export function addApprovalsWatch (approvals: Command, cli: Cli): void {
  approvals.command('watch')
    .description('print each pending call, then each change to one, until Ctrl-C')
    .option('--json', 'print each event as a line of JSON')
    .addHelpText('after', examples('svc agent approvals watch', 'svc agent approvals watch --json | jq .entry.tool'))
    .action(async ({ json }: { json?: true }, command: Command) => {
      if (json !== true) cli.out.note('Showing pending calls as they come in; stop with Ctrl-C.')
      for await (const { data } of cli.client(command).events({ path: '/api/agent/approvals/events' })) {
        if (json === true) await cli.out.write(`${data}\n`, cli.signal)
        else await cli.out.write(`${lineOf(data)}\n`, cli.signal)
      }
    })
}

function lineOf (data: string): string {
  const { kind, entry } = approvalEventSchema.parse(JSON.parse(data))
  const what = kind === 'snapshot' ? 'waits' : kind === 'repeated' ? `asked for ${entry.hit_count} times` : kind
  const why = entry.error?.message ?? entry.reason
  return harmless(oneLine(`${shortId(entry)} ${entry.tool} for ${entry.client_id}: ${what}${why == null ? '' : ` (${why})`}  ${summaryOf(entry)}`))
}
