import { createInterface, type Interface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import type { Cli } from '../cli.js'
import { CliFailure, Interrupted } from '../failure.js'
import type { ChatSession } from './session.js'

/**
 * Question and answer at the prompt until the input ends. Ctrl-C cancels the answer that is running; where none is, or
 * a second time, it ends the conversation. A question that fails is told, and the next one may be asked.
 */
export async function converse (cli: Cli, session: ChatSession): Promise<void> {
  const lines = new PromptLines(cli.process.stdin, cli.process.stderr)
  let answering: AbortController | null = null
  const interrupt = (signal: NodeJS.Signals): void => {
    if (signal === 'SIGINT' && answering?.signal.aborted === false) answering.abort(new AnswerCancelled('the answer was cancelled'))
    else cli.interrupts.abort(new Interrupted(signal))
  }
  const takeBack = cli.interrupts.takeOver(interrupt)
  // the terminal is in raw mode, where Ctrl-C is a key and not a signal
  lines.onInterrupt(() => interrupt('SIGINT'))
  cli.out.note('Ctrl-C cancels an answer, Ctrl-D ends the conversation.')
  try {
    for (let prompt = await lines.next(cli.signal); prompt !== null; prompt = await lines.next(cli.signal)) {
      if (prompt.trim() === '') continue
      answering = new AbortController()
      try {
        await session.ask(prompt, answering.signal)
      } catch (error) {
        cli.signal.throwIfAborted()
        if (!(error instanceof AnswerCancelled) && !(error instanceof CliFailure)) throw error
        cli.out.note(error instanceof AnswerCancelled ? '(cancelled)' : `Error: ${error.message}`)
      } finally {
        answering = null
      }
    }
  } finally {
    takeBack()
    lines.close()
  }
}

class AnswerCancelled extends Error {}

/** Lines of the one who types. What is typed while an answer runs is kept for the next turn. */
class PromptLines {
  readonly #readline: Interface
  readonly #waiting: string[] = []
  #closed = false
  #wake: () => void = () => {}

  constructor (input: Readable, output: Writable) {
    this.#readline = createInterface({ input, output, terminal: true, prompt: '> ' })
    this.#readline.on('line', line => {
      this.#waiting.push(line)
      this.#wake()
    })
    this.#readline.on('close', () => {
      this.#closed = true
      this.#wake()
    })
  }

  onInterrupt (listener: () => void): void {
    this.#readline.on('SIGINT', listener)
  }

  /** The next line, or null at the end of the input. Rejects with the signal's reason. */
  async next (signal: AbortSignal): Promise<string | null> {
    if (!this.#closed) this.#readline.prompt()
    const wake = (): void => this.#wake()
    signal.addEventListener('abort', wake)
    try {
      while (this.#waiting.length === 0 && !this.#closed && !signal.aborted) {
        await new Promise<void>(resolve => { this.#wake = resolve })
      }
    } finally {
      signal.removeEventListener('abort', wake)
    }
    signal.throwIfAborted()
    return this.#waiting.shift() ?? null
  }

  close (): void {
    this.#readline.close()
  }
}
