import { Argument, type Command } from 'commander'
import type { Cli } from '../cli.js'
import { bashCompletion } from '../completion/bash.js'
import { fishCompletion } from '../completion/fish.js'
import { knownNames, nameKinds, type NameKind } from '../completion/names.js'
import { completionNodes, type CompletionNode } from '../completion/tree.js'
import { zshCompletion } from '../completion/zsh.js'
import { examples } from '../terminal/help.js'

const scripts = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion } as const satisfies
  Readonly<Record<string, (nodes: readonly CompletionNode[]) => string>>

export function addCompletionCommands (program: Command, cli: Cli): void {
  program.command('completion')
    .description('print the shell completion script for svc')
    .addArgument(new Argument('<shell>', 'the shell').choices(Object.keys(scripts)))
    .addHelpText('after', '\nNames of slots, models and the like come from the gateway; without one they are not completed.')
    .addHelpText('after', examples(
      'echo \'source <(svc completion bash)\' >> ~/.bashrc', 'svc completion zsh > "${fpath[1]}/_svc"',
      'svc completion fish > ~/.config/fish/completions/svc.fish'
    ))
    .action((shell: keyof typeof scripts) => {
      cli.out.lines(scripts[shell](completionNodes(program)).trimEnd().split('\n'))
    })
  program.command('completion-names', { hidden: true })
    .description('print names that a shell may complete, for the scripts of svc completion')
    .addArgument(new Argument('<kind>', 'of what').choices(nameKinds))
    .action(async (kind: NameKind, _options: object, command: Command) => {
      cli.out.lines(await knownNames(() => cli.client(command), kind))
    })
}
