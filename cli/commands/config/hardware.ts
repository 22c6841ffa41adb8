import type { Command } from 'commander'
import { ApiFailure } from '../../client/api-failure.js'
import type { Cli } from '../../cli.js'
import { CliFailure } from '../../failure.js'
import { examples } from '../../terminal/help.js'

export function addConfigHardware (config: Command, cli: Cli): void {
  config.command('hardware')
    .description('print the hardware that the gateway detected, as JSON')
    .addHelpText('after', examples('svc config hardware', 'svc config hardware | jq .gpus'))
    .action(async (_options: object, command: Command) => {
      const client = cli.client(command)
      try {
        cli.out.json(await client.raw({ path: '/api/hardware' }))
      } catch (error) {
        if (!(error instanceof ApiFailure) || error.code !== 'system.http_404') throw error
        throw new CliFailure(`the gateway at ${client.base} does not report its hardware`, {
          cause: error, hints: ['It has no route /api/hardware; `svc status` shows which plugins are not active.']
        })
      }
    })
}
