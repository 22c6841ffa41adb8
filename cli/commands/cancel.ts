import type { Command } from 'commander'
import { z } from 'zod'
import type { Cli } from '../cli.js'
import { pathOf } from '../client/client.js'
import { examples } from '../terminal/help.js'
import { harmless } from '../terminal/text-width.js'

const cancelledSchema = z.looseObject({ cancelled: z.number() })

export function addCancelCommand (program: Command, cli: Cli): void {
  program.command('cancel <id>')
    .description('cancel a request in flight; `svc ps` shows the ids')
    .addHelpText('after', examples('svc cancel req-hT3k9Qa-1f'))
    .action(async (id: string, _options: unknown, command: Command) => {
      const call = { method: 'POST', path: pathOf`/api/requests/${id}/cancel` } as const
      const { cancelled } = await cli.client(command).call(call, cancelledSchema)
      cli.out.line(harmless(cancelled === 1 ? `Request ${id} is cancelled.` : `${cancelled} requests named ${id} are cancelled.`))
    })
}
