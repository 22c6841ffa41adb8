import { Command, Option } from 'commander'
import type { Cli } from './cli.js'
import { addAliasCommands } from './commands/alias/index.js'
import { addCancelCommand } from './commands/cancel.js'
import { addCapabilitiesCommands } from './commands/capabilities/index.js'
import { addChatCommand } from './commands/chat.js'
import { addCompletionCommands } from './commands/completion.js'
import { addConfigCommands } from './commands/config/index.js'
import { addDemoCommand } from './commands/demo.js'
import { addDoctorCommands } from './commands/doctor.js'
import { addEngineCommands } from './commands/engine/index.js'
import { addMigrateCommands } from './commands/migrate.js'
import { addModelCommands } from './commands/model/index.js'
import { addPluginCommands } from './commands/plugin/index.js'
import { addProfileCommands } from './commands/profile/index.js'
import { addProbeCommand } from './commands/probe.js'
import { addPsCommand } from './commands/ps.js'
import { addRegistryCommands } from './commands/registry.js'
import { addServeCommand } from './commands/serve.js'
import { addSetupCommand } from './commands/setup.js'
import { addSlotCommands } from './commands/slot/index.js'
import { addStackCommands } from './commands/stack/index.js'
import { addStatusCommand } from './commands/status.js'
import { addUpstreamCommands } from './commands/upstream/index.js'
import { examples } from './help.js'
import { foldLines, textWidth } from './text-width.js'
import { version } from './version.js'

/** The command line. Throws instead of exiting; what was wrong is written by then. */
export function createProgram (cli: Cli): Command {
  const { stdout, stderr } = cli.process
  const program = new Command('svc')
    .description('Runs and manages a local inference gateway.')
    .version(`svc ${version}`, '-V, --version', 'print the version')
    .addOption(new Option('--url <url>', 'address of the gateway; default is that of the home, else http://127.0.0.1:8080').env('SVC_API_URL'))
    .option('--verbose', 'errors begin with the request that failed; `svc chat` tells its speed')
    .exitOverride()
    .hook('preAction', async (_program, action) => { await cli.locate(action) })
    .configureOutput({
      writeOut: text => { stdout.write(text.split('\n').flatMap(line => foldedHelp(line, cli.out.width)).join('\n')) },
      writeErr: text => { stderr.write(text) },
      outputError: text => cli.out.note(text.replace(/^error:/, 'Error:').trimEnd()),
      getOutHelpWidth: () => cli.out.width,
      getErrHelpWidth: () => cli.out.width
    })
    .configureHelp({ showGlobalOptions: true })
    .showSuggestionAfterError()
    .showHelpAfterError('Run the command with --help to see what it takes.')
    .addHelpText('after', examples('svc serve --demo', 'svc chat "Why is the sky blue?"', 'svc slot list'))
  addServeCommand(program, cli)
  addSetupCommand(program, cli)
  addDemoCommand(program, cli)
  addChatCommand(program, cli)
  addStatusCommand(program, cli)
  addProbeCommand(program, cli)
  addPsCommand(program, cli)
  addCancelCommand(program, cli)
  addSlotCommands(program, cli)
  addUpstreamCommands(program, cli)
  addAliasCommands(program, cli)
  addModelCommands(program, cli)
  addProfileCommands(program, cli)
  addStackCommands(program, cli)
  addCapabilitiesCommands(program, cli)
  addConfigCommands(program, cli)
  addDoctorCommands(program, cli)
  addRegistryCommands(program, cli)
  addMigrateCommands(program, cli)
  addPluginCommands(program, cli)
  addEngineCommands(program, cli)
  addCompletionCommands(program, cli)
  return program
}

/** Notes fold as the rest of a help text does; command lines are for copying. */
function foldedHelp (line: string, width: number): string[] {
  return line.startsWith('  $ ') || textWidth(line) <= width ? [line] : foldLines(line, width)
}
