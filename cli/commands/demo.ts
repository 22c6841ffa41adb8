import { join, resolve } from 'node:path'
import type { Command } from 'commander'
import type { Cli } from '../cli.js'
import { examples } from '../terminal/help.js'
import { homeOption } from './serve.js'

export function addDemoCommand (program: Command, cli: Cli): void {
  program.command('demo')
    .description('start a gateway, stream one answer through it, and stop it')
    .addOption(homeOption())
    .option('--no-install', 'do not download the embedded engine if there is no other')
    .addHelpText('after', '\nWithout --home it uses the folder .svc/demo below the current one.')
    .addHelpText('after', examples('svc demo'))
    .action(async (options: { home?: string, install: boolean }) => {
      const given = options.home ?? ''
      const home = given === '' ? join(cli.process.cwd(), '.svc', 'demo') : resolve(cli.process.cwd(), given)
      if (options.install) {
        const { bringForDemo } = await import('../serve/bring-engine.js')
        await bringForDemo(cli, home, 'fail')
      }
      const { runDemo } = await import('../serve/demo.js')
      await runDemo(cli, home)
    })
}
