import type { Command } from 'commander'
import { z } from 'zod'
import type { Cli } from '../../cli.js'
import { examples } from '../../terminal/help.js'
import { harmless } from '../../terminal/text-width.js'

const scannedSchema = z.looseObject({
  added: z.array(z.string()),
  skipped: z.array(z.looseObject({ path: z.string(), reason: z.string() })),
  scanned_roots: z.array(z.string())
})

export function addModelScan (model: Command, cli: Cli): void {
  model.command('scan')
    .description('register the model files in the configured folders')
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc model scan'))
    .action(async (options: { json?: true }, command: Command) => {
      const client = cli.client(command)
      const call = { method: 'POST', path: '/api/models/scan', timeoutMs: null } as const
      if (options.json === true) return cli.out.json(await client.raw(call))
      const { added, skipped, scanned_roots: roots } = await client.call(call, scannedSchema)
      cli.out.line(`${added.length} new in ${roots.join(', ')}${added.length === 0 ? '' : `: ${added.join(', ')}`}`)
      for (const { path, reason } of skipped.filter(each => each.reason !== 'already_registered')) cli.out.note(harmless(`left out: ${path}: ${reason}`))
    })
}
