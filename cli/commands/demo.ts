import { join, resolve } from 'node:path'
import type { Command } from 'commander'
import type { Cli } from '../cli.js'
import { examples } from '../help.js'
import { homeOption } from './serve.js'

export function addDemoCommand (program: Command, cli: Cli): void {
  program.command('demo')
    .description('start a gateway, stream one answer through it, and stop it again')
    .addOption(homeOption())
    .addHelpText('after', '\nWithout --home it works in the folder .svc/demo of the current one.')
    .addHelpText('after', examples('svc demo'))
    .action(async (options: { home?: string }) => {
      const { runDemo } = await import('../serve/demo.js')
      const home = options.home ?? ''
      await runDemo(cli, home === '' ? join(cli.process.cwd(), '.svc', 'demo') : resolve(cli.process.cwd(), home))
    })
}
