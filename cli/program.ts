import { Command, Help, Option } from 'commander'
import type { Cli } from './cli.js'
import { commandGroups, nameOf, type CommandGroup } from './commands/index.js'
import { examples } from './terminal/help.js'
import { followHelp } from './terminal/help-words.js'
import { foldLines, textWidth } from './terminal/text-width.js'
import { version } from './version.js'

/**
 * The command line. Throws instead of exiting; what was wrong is written by then. Commands that `words` do not name are
 * in the list of commands and nothing more: loading all of them takes longer than most of them run.
 */
export async function createProgram (cli: Cli, words: readonly string[] | null = null): Promise<Command> {
  const wanted = words === null ? new Set(commandGroups) : wantedBy(words)
  const named = new Map<Command, string>()
  const help = new Help()
  const { stdout, stderr } = cli.process
  const program: Command = new Command('svc')
    .description('Runs and manages a local inference gateway.')
    .version(`svc ${version}`, '-V, --version', 'print the version')
    .addOption(new Option('--url <url>', 'address of the gateway; default is that of the home, else http://127.0.0.1:8080').env('SVC_API_URL'))
    .option('--verbose', 'errors begin with the request that failed; `svc chat` shows its speed')
    .exitOverride()
    .hook('preAction', async (_program, action) => { await cli.locate(action) })
    .configureOutput({
      writeOut: text => { stdout.write(text.split('\n').flatMap(line => foldedHelp(line, cli.out.width)).join('\n')) },
      writeErr: text => { stderr.write(text) },
      outputError: text => cli.out.note(text.replace(/^error:/, 'Error:').trimEnd()),
      getOutHelpWidth: () => cli.out.width,
      getErrHelpWidth: () => cli.out.width
    })
    .configureHelp({ showGlobalOptions: true, subcommandTerm: command => named.get(command) ?? help.subcommandTerm(command) })
    .showSuggestionAfterError()
    .showHelpAfterError('Run the command with --help to see what it takes.')
    .addHelpText('beforeAll', context => followHelp(program, context))
    .addHelpText('after', examples('svc serve --demo', 'svc chat "Why is the sky blue?"', 'svc slot list'))
  for (const group of commandGroups) {
    if (wanted.has(group)) (await group.load())(program, cli)
    else named.set(program.command(nameOf(group)).description(group.about), group.usage)
  }
  return program
}

/** The commands that a command line can mean, or all for what describes all of them. */
function wantedBy (words: readonly string[]): ReadonlySet<CommandGroup> {
  if (words.some(word => word.startsWith('completion'))) return new Set(commandGroups)
  return new Set(commandGroups.filter(group => words.includes(nameOf(group))))
}

/** Notes fold as the rest of a help text does; command lines are for copying. */
function foldedHelp (line: string, width: number): string[] {
  return line.startsWith('  $ ') || textWidth(line) <= width ? [line] : foldLines(line, width)
}
