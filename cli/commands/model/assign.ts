import type { Command } from 'commander'
import { z } from 'zod'
import type { Cli } from '../../cli.js'
import { pathOf } from '../../client/client.js'
import { CliFailure } from '../../failure.js'
import { examples } from '../../terminal/help.js'
import { modelRecordSchema } from '../../record/model-record.js'

export function addModelAssign (model: Command, cli: Cli): void {
  model.command('assign <ref>')
    .description('make a model the default of a slot, without loading it')
    .requiredOption('-s, --slot <slot>', 'the slot')
    .addHelpText('after', examples('svc model assign qwen3-4b --slot agent'))
    .action(async (ref: string, { slot }: { slot: string }, command: Command) => {
      const client = cli.client(command)
      const record = await client.call({ path: pathOf`/api/models/${ref}` }, modelRecordSchema)
      if (!record.installed && record.owned_by === 'local') {
        throw new CliFailure(`the file of '${ref}' is gone (${record.path ?? 'no path'}): no slot can load it`)
      }
      if (!record.installed) throw new CliFailure(`'${ref}' is a model of ${record.upstream ?? 'an upstream'} and not on this machine: no slot can load it`)
      await client.call({ method: 'PUT', path: pathOf`/api/slots/${slot}/config`, body: { model: { default: ref } } }, z.unknown())
      cli.out.line(`Slot ${slot} is now set to model ${ref}. Load it with: svc slot restart ${slot}`)
    })
}
