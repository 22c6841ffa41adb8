import { Option, type Command } from 'commander'
import { embeddedWords } from '../../../plugins/providers/llm-server/words.js'
import type { Cli } from '../../cli.js'
import { examples } from '../../terminal/help.js'
import { homeOption } from '../serve.js'

interface InstallOptions { readonly gpu: 'auto' | 'none' | 'cuda' | 'vulkan' }

/** What touches the home on disk is loaded when it is needed: it costs more than the rest of the command line. */
export function addEngineCommands (program: Command, cli: Cli): void {
  const engine = program.command('engine').description('manage engines that run without containers')
  engine.command('list')
    .description('list the engines that are installed')
    .option('--json', 'print the list as JSON')
    .addOption(homeOption())
    .addHelpText('after', examples('svc engine list'))
    .action(async (options: { json?: true }, command: Command) => {
      const { listEngines } = await import('../../offline/engines/engines.js')
      const { homeOf } = await import('../../offline/home/home-of.js')
      await listEngines(cli, await homeOf(cli, command), options)
    })
  engine.command('install <name>')
    .description('download an engine for this machine; the only one is embedded')
    .addOption(new Option('--gpu <build>', 'also install a build for the GPU').choices(['auto', 'none', 'cuda', 'vulkan']).default('auto'))
    .addOption(homeOption())
    .addHelpText('after', `\n${embeddedWords.help}`)
    .addHelpText('after', examples('svc engine install embedded', 'svc engine install embedded --gpu none'))
    .action(async (name: string, options: InstallOptions, command: Command) => {
      const { installEngine } = await import('../../offline/engines/engines.js')
      const { homeOf } = await import('../../offline/home/home-of.js')
      await installEngine(cli, name, await homeOf(cli, command), options)
    })
  engine.command('remove <name>')
    .description('delete an engine that was installed')
    .option('-f, --force', 'unload the slots that run on it first')
    .addOption(homeOption())
    .addHelpText('after', examples('svc engine remove embedded'))
    .action(async (name: string, options: { force?: true }, command: Command) => {
      const { removeEngine } = await import('../../offline/engines/engines.js')
      const { homeOf } = await import('../../offline/home/home-of.js')
      await removeEngine(cli, name, await homeOf(cli, command), options)
    })
}
