import { createInterface, type Interface } from 'node:readline/promises'
import type { Cli } from '../cli.js'
import { Interrupted } from '../failure.js'
import { foldLines } from '../terminal/text-width.js'

const LEAST_ROOM = 20
/** Columns that are left for a short answer. */
const ANSWER_ROOM = 8

/** Questions at the prompt, on standard error, so that results can be piped. */
export class Prompt {
  readonly #cli: Cli
  readonly #lines: Interface
  /** Standard input ended: no answer can come any more. */
  readonly #gone = new AbortController()

  constructor (cli: Cli) {
    this.#cli = cli
    this.#lines = createInterface({ input: cli.process.stdin, output: cli.process.stderr })
    // the terminal is in raw mode, where Ctrl-C is a key and not a signal
    this.#lines.on('SIGINT', () => cli.interrupts.abort(new Interrupted('SIGINT')))
    this.#lines.once('close', () => this.#gone.abort(new Interrupted('SIGINT')))
  }

  /** Asks until the answer will do: `read` returns what it means, or undefined after saying what is wrong with it. */
  async ask<T> (question: string, read: (answer: string) => T | undefined): Promise<T> {
    for (;;) {
      const value = read((await this.#line(question)).trim())
      if (value !== undefined) return value
    }
  }

  /** Return alone takes the default. */
  async text (question: string, preset: string): Promise<string> {
    return await this.ask(`${question} [${preset}]`, answer => answer === '' ? preset : answer)
  }

  async confirm (question: string, preset: boolean): Promise<boolean> {
    return await this.ask(`${question} [${preset ? 'Y/n' : 'y/N'}]`, answer => {
      if (answer === '') return preset
      const said = /^(?:(y(?:es)?)|n(?:o)?)$/i.exec(answer)
      if (said !== null) return said[1] !== undefined
      this.#cli.out.note('Please answer y or n.')
      return undefined
    })
  }

  /** A numbered list; the number or the name of a choice is taken, and of `others` a name that is not shown. */
  async choose (
    question: string, choices: ReadonlyArray<{ readonly name: string, readonly about: string }>, preset: number,
    others: ReadonlySet<string> = new Set()
  ): Promise<string> {
    const { out } = this.#cli
    const width = Math.max(...choices.map(({ name }) => name.length))
    choices.forEach(({ name, about }, i) => {
      out.noteBeside(`  ${String(i + 1).padStart(2)}  ${name.padEnd(width)}  `, about)
    })
    return await this.ask(`${question} [${preset + 1}]`, answer => {
      const picked = answer === '' ? choices[preset] : choices[Number(answer) - 1] ?? choices.find(({ name }) => name === answer)
      if (picked !== undefined) return picked.name
      if (others.has(answer)) return answer
      out.note(`'${answer}' is not one of these. Please give a number from 1 to ${choices.length}${others.size === 0 ? '' : ', or the id of a model'}.`)
      return undefined
    })
  }

  close (): void {
    this.#lines.close()
  }

  /** What is wider than the terminal is shown before, folded; the last line of it stands beside the cursor. */
  async #line (question: string): Promise<string> {
    const { stderr } = this.#cli.process
    const room = stderr.isTTY === true ? Math.max(LEAST_ROOM, (stderr.columns ?? this.#cli.out.width) - ANSWER_ROOM) : Infinity
    const lines = foldLines(question.trimEnd(), room)
    const last = lines.pop() ?? ''
    if (lines.length > 0) this.#cli.out.note(lines.join('\n'))
    const signal = AbortSignal.any([this.#cli.signal, this.#gone.signal])
    try {
      return await this.#lines.question(`${last} `, { signal })
    } catch (error) {
      signal.throwIfAborted()
      throw error
    }
  }
}
