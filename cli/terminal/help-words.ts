import type { AddHelpTextContext, Command } from 'commander'
import { suggest } from '../../kernel/contract/text/suggest.js'

/**
 * Before a help text that `help` asks for. Commander knows only the first word after it: it answers one that no command has
 * with the whole help, and leaves out the others.
 */
export function followHelp (program: Command, { command: shown }: AddHelpTextContext): string {
  const wanted = wantedBy(program)
  if (wanted !== null && wanted !== shown) wanted.help()
  return ''
}

/** The command that the words after `help` name; null without `help`. Ends the program where one of them names none. */
function wantedBy (program: Command): Command | null {
  let command = program
  let asks = false
  for (const word of program.args) {
    if (command.commands.length === 0 || word.startsWith('-')) break
    if (word === 'help') {
      asks = true
      continue
    }
    const below = command.commands.find(each => each.name() === word || each.aliases().includes(word))
    if (below === undefined) return asks ? command.error(unknownText(command, word), { code: 'commander.unknownCommand' }) : null
    command = below
  }
  return asks ? command : null
}

function unknownText (command: Command, word: string): string {
  const meant = suggest(word, command.createHelp().visibleCommands(command).flatMap(each => [each.name(), ...each.aliases()]))
  return `error: unknown command '${word}'${meant === null ? '' : `\n(Did you mean ${meant}?)`}`
}
