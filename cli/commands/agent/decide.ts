import type { Command } from 'commander'
import type { Cli } from '../../cli.js'
import { pathOf } from '../../client/client.js'
import { CliFailure } from '../../failure.js'
import { examples } from '../../terminal/help.js'
import { harmless } from '../../terminal/text-width.js'
import { approvalAnswerSchema, wholeId } from './approval-record.js'

export function addApprovalsDecide (approvals: Command, cli: Cli): void {
  approvals.command('approve <id>')
    .description('run a pending call and wait for it to finish; the start of its id is enough')
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc agent approvals approve 3fb20c1d'))
    .action(async (typed: string, { json }: { json?: true }, command: Command) => {
      const client = cli.client(command)
      const id = await wholeId(client, typed)
      // it goes on in the gateway when this command is interrupted
      const answer = await client.raw({ method: 'POST', path: pathOf`/api/agent/approvals/${id}/approve`, timeoutMs: null })
      if (json === true) cli.out.json(answer)
      const { approval } = approvalAnswerSchema.parse(answer)
      if (approval.state !== 'executed') {
        throw new CliFailure(`${approval.tool} was approved and failed: ${approval.error?.message ?? approval.state}`)
      }
      if (json !== true) cli.out.line(harmless(`${approval.tool} ran for ${approval.client_id}.`))
    })

  approvals.command('deny <id>')
    .description('refuse a pending call; the start of its id is enough')
    .option('--reason <text>', 'reason that the agent receives')
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc agent approvals deny 3fb20c1d', 'svc agent approvals deny 3fb20c1d --reason "the disk is full"'))
    .action(async (typed: string, { reason, json }: { reason?: string, json?: true }, command: Command) => {
      const client = cli.client(command)
      const path = pathOf`/api/agent/approvals/${await wholeId(client, typed)}/deny`
      const call = { method: 'POST', path, body: reason === undefined ? {} : { reason } } as const
      if (json === true) return cli.out.json(await client.raw(call))
      const { approval } = await client.call(call, approvalAnswerSchema)
      cli.out.line(harmless(`${approval.tool} for ${approval.client_id} is denied.`))
    })
}
