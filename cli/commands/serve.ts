import { InvalidArgumentError, Option, type Command } from 'commander'
import type { Cli } from '../cli.js'
import { examples } from '../terminal/help.js'
import type { ServeOptions } from '../serve/serve.js'

const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const

export const homeOption = (): Option =>
  new Option('--home <dir>', 'root of the folders etc/svc and var/lib/svc').env('SVC_HOME')

export function addServeCommand (program: Command, cli: Cli): void {
  program.command('serve')
    .description('start the gateway and run it until it is stopped')
    .addOption(new Option('--host <host>', 'address to listen on; default: that of svc.toml, else 127.0.0.1').env('SVC_BIND_HOST'))
    .addOption(new Option('--port <port>', 'port to listen on, 0 takes any free one; default: that of svc.toml, else 8080')
      .env('SVC_PORT').argParser(parsePort))
    .addOption(homeOption())
    .option('--demo', 'set up slot agent with a tiny demo model')
    .option('--no-install', 'with --demo: do not download the embedded engine if there is no other')
    .option('--reload', 'read the configuration again when its files change')
    .addOption(new Option('--log-level <level>', 'minimum severity of log lines; default: that of svc.toml, else info')
      .env('SVC_LOG_LEVEL').choices(logLevels))
    .option('--ready-json', 'print {"url", "pid"} as one line once it is listening, and nothing else')
    .option('--stop-engines', 'stop the engines with the gateway, overriding the configuration')
    .option('--standby', 'if another gateway runs on the home, wait until it exits, then take over')
    .addOption(new Option('--stop-on-stdin-end', 'stop when standard input ends, as when the parent process exits').hideHelp())
    .addOption(new Option('--check-answers', 'fail requests whose answer does not fit its schema: for tests').hideHelp())
    .addHelpText('after', '\nThe first Ctrl-C or SIGTERM stops it cleanly, the second shortens the wait, the third exits at once.')
    .addHelpText('after', examples('svc serve --demo --home .svc', 'svc serve --host 0.0.0.0 --port 9000'))
    .action(async (options: ServeOptions & { readonly install: boolean }) => {
      if (options.demo === true && options.install) {
        const { bringForDemo } = await import('../serve/bring-engine.js')
        await bringForDemo(cli, options.home, 'warn')
      }
      // the kernel is loaded for this command only: no other one pays for it
      const { serve } = await import('../serve/serve.js')
      await serve(cli, options)
    })
}

function parsePort (text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : NaN
  if (!(port <= 65535)) throw new InvalidArgumentError('It must be a number from 0 to 65535.')
  return port
}
