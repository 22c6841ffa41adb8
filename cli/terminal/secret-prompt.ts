import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import type { Cli } from '../cli.js'
import { endsInput } from './confirm.js'
import { Interrupted } from '../failure.js'

const LONGEST_SECRET = 64 * 1024

/** One line that is not shown: typed at a prompt that shows nothing, or all of what is piped in. Empty after Ctrl-D. */
export async function readSecret (cli: Cli, question: string): Promise<string> {
  const { stdin, stderr } = cli.process
  if (stdin.isTTY !== true) return await readAll(cli)
  stderr.write(question)
  // the prompt is ours; what the line editor echoes goes nowhere
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  const prompt = createInterface({ input: stdin, output: nowhere, terminal: true })
  try {
    // the terminal is in raw mode, where Ctrl-C is a key and not a signal
    prompt.on('SIGINT', () => cli.interrupts.abort(new Interrupted('SIGINT')))
    return await prompt.question('', { signal: cli.signal })
  } catch (error) {
    cli.signal.throwIfAborted()
    if (!endsInput(error)) throw error
    return ''
  } finally {
    prompt.close()
    stderr.write('\n')
  }
}

async function readAll (cli: Cli): Promise<string> {
  let text = ''
  for await (const chunk of cli.process.stdin) {
    cli.signal.throwIfAborted()
    text += String(chunk)
    if (text.length > LONGEST_SECRET) break
  }
  return text
}
