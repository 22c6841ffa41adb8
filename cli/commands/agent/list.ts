import { Option, type Command } from 'commander'
import type { Cli } from '../../cli.js'
import { examples } from '../../terminal/help.js'
import { harmless } from '../../terminal/text-width.js'
import { approvalListSchema, shortId, stateColour, summaryOf } from './approval-record.js'

const states = ['pending', 'approved', 'executed', 'failed', 'denied', 'expired', 'all'] as const

export function addApprovalsList (approvals: Command, cli: Cli): void {
  approvals.command('list')
    .description('list pending calls, or earlier ones and their outcomes')
    .addOption(new Option('--state <state>', 'which of them').choices(states).default('pending'))
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc agent approvals list', 'svc agent approvals list --state all'))
    .action(async ({ state, json }: { state: typeof states[number], json?: true }, command: Command) => {
      const client = cli.client(command)
      const call = { path: '/api/agent/approvals', query: { state } }
      if (json === true) return cli.out.json(await client.raw(call))
      const { approvals: rows, next_before: more } = await client.call(call, approvalListSchema)
      if (rows.length === 0) return cli.out.line(state === 'pending' ? 'No call is waiting for approval.' : 'There are none.')
      cli.out.table([
        { title: 'ID', cell: shortId },
        { title: 'TOOL', cell: ({ server, tool }) => harmless(server === 'admin' ? tool : `${server}/${tool}`) },
        { title: 'AGENT', cell: ({ client_id: client }) => harmless(client) },
        { title: 'REQUESTED AT', cell: ({ enqueued_at: at }) => `${new Date(at * 1000).toISOString().slice(0, 19)}Z`, expendable: 1 },
        { title: 'TIMES', cell: ({ hit_count: hits }) => String(hits), expendable: 2 },
        ...state === 'pending' ? [] : [{
          title: 'STATE',
          cell: (row: typeof rows[number]) => row.state,
          paint: (text: string, row: typeof rows[number]) => cli.out.paint(stateColour(row.state), text)
        }],
        { title: 'SUMMARY', cell: row => harmless(summaryOf(row)), flexible: true }
      ], rows)
      for (const row of rows) {
        const why = row.error?.message ?? row.reason
        if (why != null) cli.out.line(harmless(`${shortId(row)}: ${why}`))
      }
      if (more != null) cli.out.note('There are older ones: page through them with `--json` and GET /api/agent/approvals?before=.')
    })
}
