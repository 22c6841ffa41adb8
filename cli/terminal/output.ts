import { once } from 'node:events'
import type { Writable } from 'node:stream'
import { foldLines, oneLine, padTo } from './text-width.js'
import { cliWords, unmarked } from '../client/route-words.js'
import type { OwnCommand } from '../own-command.js'
import { tableLines, type Column } from './table.js'

export type Sink = Writable & { readonly isTTY?: boolean, readonly columns?: number, readonly rows?: number }

export interface OutputStreams {
  readonly stdout: Sink
  readonly stderr: Sink
  readonly env: Readonly<Record<string, string | undefined>>
}

const colours = { red: 31, green: 32, yellow: 33, cyan: 36, dim: 2, bold: 1 } as const
export type Colour = keyof typeof colours

const DEFAULT_WIDTH = 80
/** Narrower than this, whole words help no reader. */
const LEAST_FOLD = 20

/** What goes to the one at the prompt: results on standard output, everything about the way there on standard error. */
export class Output {
  readonly #streams: OutputStreams
  readonly #command: () => OwnCommand

  /** @param command how users call this program */
  constructor (streams: OutputStreams, command: () => OwnCommand) {
    this.#streams = streams
    this.#command = command
  }

  /** Standard output is a terminal. */
  get watched (): boolean { return this.#streams.stdout.isTTY === true }

  /** Standard error is a terminal, so a line can be drawn over. */
  get animated (): boolean { return this.#streams.stderr.isTTY === true && this.#streams.env.TERM !== 'dumb' }

  /** What was written to standard output can be drawn over. */
  get redrawable (): boolean { return this.watched && this.#streams.env.TERM !== 'dumb' }

  /** Lines of the terminal; null if unknown. */
  get height (): number | null { return this.#streams.stdout.rows ?? null }

  get width (): number {
    const asked = Number(this.#streams.env.COLUMNS)
    return this.#streams.stdout.columns ?? (Number.isInteger(asked) && asked > 0 ? asked : DEFAULT_WIDTH)
  }

  get coloured (): boolean { return this.watched && allowsColour(this.#streams.env) }

  /** A sentence: folded between words at a terminal, further lines below its beginning. */
  line (text = ''): void {
    const [indent] = /^ */.exec(text)!
    this.lines(this.folded(this.told(text.slice(indent.length)), indent.length).map(line => indent + line))
  }

  /** As `line` words a text, for places that take it as it is. */
  told (text: string): string {
    return cliWords(text, this.#command())
  }

  /** Lines as they are: what is copied or read by programs, and what has its width already. */
  lines (texts: readonly string[]): void {
    for (const text of texts) this.#streams.stdout.write(`${unmarked(text)}\n`)
  }

  /** Resolves when the reader keeps up, or the signal aborts. */
  async write (text: string, signal?: AbortSignal): Promise<void> {
    if (this.#streams.stdout.write(text)) return
    await once(this.#streams.stdout, 'drain', signal === undefined ? {} : { signal }).catch((error: unknown) => {
      // the reason says what ended it, the error of `once` only that it ended
      signal?.throwIfAborted()
      throw error
    })
  }

  json (value: unknown): void {
    this.lines([JSON.stringify(value, null, 2)])
  }

  table<Row> (columns: ReadonlyArray<Column<Row>>, rows: readonly Row[]): void {
    const [titles, ...body] = tableLines(columns, rows, this.width)
    this.lines([this.paint('bold', titles!), ...body])
  }

  /** Names and values, one pair a line. Nulls are left out. */
  pairs (pairs: ReadonlyArray<readonly [string, string | null]>): void {
    const shown = pairs.filter((pair): pair is [string, string] => pair[1] !== null && pair[1] !== '')
    const width = Math.max(0, ...shown.map(([name]) => name.length))
    for (const [name, value] of shown) {
      const [first = '', ...more] = this.folded(oneLine(value), width + 2)
      this.lines([`${this.paint('bold', padTo(name, width))}  ${first}`, ...more.map(line => ' '.repeat(width + 2) + line)])
    }
  }

  /** Lines that a terminal need not break, beside an indent; what goes to a pipe stays one line. */
  folded (text: string, indent = 0): string[] {
    return this.watched ? foldLines(text, Math.max(LEAST_FOLD, this.width - indent)) : [text]
  }

  paint (colour: Colour, text: string): string {
    return this.coloured ? `\u001b[${colours[colour]}m${text}\u001b[0m` : text
  }

  /** A sentence on standard error: folded between words at a terminal, further lines below its beginning. */
  note (text: string): void {
    this.#writeNote(this.#notes(text).join('\n'))
  }

  /** As `note`, each further line indented. */
  noteFolded (text: string, indent = ''): void {
    this.#writeNote(this.#notes(text, indent.length).map((line, i) => i === 0 ? line : indent + line).join('\n'))
  }

  /** A text on standard error beside what leads it, each further line below its beginning. */
  noteBeside (lead: string, text: string): void {
    const { stderr } = this.#streams
    const room = stderr.isTTY === true ? Math.max(LEAST_FOLD, (stderr.columns ?? this.width) - lead.length) : Infinity
    const [first = '', ...more] = foldLines(text, room)
    this.#writeNote([`${lead}${first}`.trimEnd(), ...more.map(line => ' '.repeat(lead.length) + line)].join('\n'))
  }

  /** As `paint`, for standard error. */
  dimNote (text: string): void {
    const { stderr, env } = this.#streams
    const lines = this.#notes(text).join('\n')
    this.#writeNote(stderr.isTTY === true && allowsColour(env) ? `\u001b[${colours.dim}m${lines}\u001b[0m` : lines)
  }

  #notes (text: string, indent = 0): string[] {
    const { stderr } = this.#streams
    const told = this.told(text)
    if (stderr.isTTY !== true) return [told]
    const width = (stderr.columns ?? this.width) - indent
    return told.split('\n').flatMap(line => {
      const [lead] = /^ */.exec(line)!
      return foldLines(line.slice(lead.length), Math.max(LEAST_FOLD, width - lead.length)).map(part => lead + part)
    })
  }

  #writeNote (text: string): void {
    this.#streams.stderr.write(`${text}\n`)
  }

  /** Draws over the line that was drawn before; nothing where no terminal is. */
  redraw (text: string): void {
    if (this.animated) this.#streams.stderr.write(`\r\u001b[2K${text}`)
  }
}

function allowsColour (env: OutputStreams['env']): boolean {
  return (env.NO_COLOR ?? '') === '' && env.TERM !== 'dumb'
}
