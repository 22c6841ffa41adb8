import type { Command } from 'commander'
import type { Cli } from '../../cli.js'
import { examples } from '../../terminal/help.js'
import { homeOption } from '../serve.js'

export function addClusterCommands (program: Command, cli: Cli): void {
  const cluster = program.command('cluster').description('prepare a Kubernetes cluster for slots')
  cluster.command('manifest')
    .description('print the namespace, account and rights that slots in a cluster need')
    .option('--namespace <name>', 'namespace; default is that of [runtime.kubernetes], else of this pod, else svc')
    .addOption(homeOption())
    .addHelpText('after', '\nA cluster administrator applies it. `svc doctor` says which rights are missing.')
    .addHelpText('after', examples('svc cluster manifest | kubectl apply -f -'))
    .action(async (options: { namespace?: string }, command: Command) => {
      const { printManifest } = await import('../../offline/cluster/cluster.js')
      const { homeOf } = await import('../../offline/home/home-of.js')
      await printManifest(cli, await homeOf(cli, command), options)
    })
}
