import type { Command } from 'commander'
import { z } from 'zod'
import type { Cli } from '../../cli.js'
import { pathOf } from '../../client/client.js'
import { confirm } from '../../terminal/confirm.js'
import { CliFailure } from '../../failure.js'
import { examples } from '../../terminal/help.js'

export function addSlotDelete (slot: Command, cli: Cli): void {
  slot.command('delete <name>')
    .description('stop a slot and remove its configuration')
    .option('-f, --force', 'do not ask; without a terminal svc never does. Also delete pinned slots and those that came with the gateway')
    .addHelpText('after', examples('svc slot delete coder'))
    .action(async (name: string, options: { force?: true }, command: Command) => {
      const force = options.force === true
      if (!force && !await confirm(cli, `Delete slot ${name} and its configuration?`)) throw new CliFailure('nothing was deleted')
      await cli.client(command).call(
        { method: 'DELETE', path: pathOf`/api/slots/${name}`, timeoutMs: null, ...(force ? { query: { force } } : {}) }, z.unknown()
      )
      cli.out.line(`Slot ${name} is deleted.`)
    })
}
