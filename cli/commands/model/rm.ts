import type { Command } from 'commander'
import { z } from 'zod'
import type { Cli } from '../../cli.js'
import { pathOf } from '../../client/client.js'
import { confirm } from '../../terminal/confirm.js'
import { CliFailure } from '../../failure.js'
import { examples } from '../../terminal/help.js'

const deletedSchema = z.looseObject({ affected_slots: z.array(z.string()).default([]) })

export function addModelRm (model: Command, cli: Cli): void {
  model.command('rm <ref>')
    .description('remove a model from the registry; its file stays')
    .option('-f, --force', 'do not ask; without a terminal svc never does')
    .addHelpText('after', '\nSlots that run it are unloaded, and their configuration no longer names it.')
    .addHelpText('after', examples('svc model rm qwen3-4b'))
    .action(async (ref: string, options: { force?: true }, command: Command) => {
      if (options.force !== true && !await confirm(cli, `Remove model ${ref} from the registry and from all slots?`)) throw new CliFailure('nothing was changed')
      const { affected_slots: slots } = await cli.client(command)
        .call({ method: 'DELETE', path: pathOf`/api/models/${ref}`, timeoutMs: null }, deletedSchema)
      cli.out.line(`Model ${ref} is removed from the registry; its file is still on disk.`)
      if (slots.length > 0) cli.out.line(`Slots without a model now: ${slots.join(', ')}`)
    })
}
