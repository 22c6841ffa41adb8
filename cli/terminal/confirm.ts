import { createInterface } from 'node:readline/promises'
import type { Cli } from '../cli.js'
import { Interrupted } from '../failure.js'

/** Asks for a yes at the prompt. Without a terminal, as in a script, the command line is the answer. */
export async function confirm (cli: Cli, question: string): Promise<boolean> {
  if (cli.process.stdin.isTTY !== true || cli.process.stderr.isTTY !== true) return true
  return /^y(es)?$/i.test(await ask(cli, `${question} [y/N] `))
}

/** What is typed at the prompt, trimmed; empty at Ctrl-D. Throws at Ctrl-C. */
export async function ask (cli: Cli, question: string): Promise<string> {
  const { stdin, stderr } = cli.process
  const prompt = createInterface({ input: stdin, output: stderr })
  try {
    // the terminal is in raw mode, where Ctrl-C is a key and not a signal
    prompt.on('SIGINT', () => cli.interrupts.abort(new Interrupted('SIGINT')))
    const answer = await prompt.question(question, { signal: cli.signal })
    return answer.trim()
  } catch (error) {
    cli.signal.throwIfAborted()
    if (!endsInput(error)) throw error
    stderr.write('\n')
    return ''
  } finally {
    prompt.close()
  }
}

/** Ctrl-D: the line editor gives the question up, as it does when our signal aborts. */
export function endsInput (error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ABORT_ERR'
}
