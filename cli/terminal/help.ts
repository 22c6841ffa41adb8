/** The closing lines of a help text. */
export function examples (...commands: readonly string[]): string {
  return ['', commands.length === 1 ? 'Example:' : 'Examples:', ...commands.map(command => `  $ ${command}`)].join('\n')
}
