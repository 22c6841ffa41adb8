import { createInterface } from 'node:readline/promises'
import type { Cli } from './cli.js'
import { Interrupted } from './failure.js'

/** Asks at the prompt, where Ctrl-D is a no. Without a terminal, as in a script, the command line is the answer. */
export async function confirm (cli: Cli, question: string): Promise<boolean> {
  const { stdin, stderr } = cli.process
  if (stdin.isTTY !== true || stderr.isTTY !== true) return true
  const prompt = createInterface({ input: stdin, output: stderr })
  try {
    // the terminal is in raw mode, where Ctrl-C is a key and not a signal
    prompt.on('SIGINT', () => cli.interrupts.abort(new Interrupted('SIGINT')))
    const answer = await prompt.question(`${question} [y/N] `, { signal: cli.signal })
    return /^y(es)?$/i.test(answer.trim())
  } catch (error) {
    cli.signal.throwIfAborted()
    if (!endsInput(error)) throw error
    stderr.write('\n')
    return false
  } finally {
    prompt.close()
  }
}

/** Ctrl-D: the line editor gives the question up, as it does when our signal aborts. */
export function endsInput (error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ABORT_ERR'
}
