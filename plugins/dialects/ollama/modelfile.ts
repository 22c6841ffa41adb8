import { malformed } from '../../v1/over-chat/ref.js'

/** What a Modelfile says. Names of instructions are in capitals. */
export interface Modelfile {
  readonly from: string
  readonly parameters: ReadonlyArray<readonly [name: string, value: string]>
  /** The other instructions that are in it. */
  readonly others: readonly string[]
}

const INSTRUCTION = /^\s*([A-Za-z]+)\s+([^]*)$/
const known: ReadonlySet<string> = new Set(['FROM', 'PARAMETER', 'TEMPLATE', 'SYSTEM', 'ADAPTER', 'LICENSE', 'MESSAGE', 'REQUIRES'])

/** Reads a Modelfile. Throws `validation.invalid` for what is none. Pure; one pass. */
export function readModelfile (text: string): Modelfile {
  let from = ''
  const parameters: Array<readonly [string, string]> = []
  const others = new Set<string>()
  for (const { name, value } of instructions(text.split(/\r?\n/))) {
    if (name === 'FROM') {
      if (from !== '' && from !== value) throw malformed('modelfile', 'has more than one FROM')
      from = value
    } else if (name === 'PARAMETER') {
      const [, key = '', said = ''] = /^(\S+)\s+([^]+)$/.exec(value) ?? []
      if (key === '') throw malformed('modelfile', 'has a PARAMETER without a name and a value')
      parameters.push([key, unquoted(said.trim())])
    } else others.add(name)
  }
  if (from === '') throw malformed('modelfile', 'has no FROM, which names the base model')
  return { from, parameters, others: [...others] }
}

function* instructions (lines: readonly string[]): Generator<{ readonly name: string, readonly value: string }> {
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at]!
    if (line.trim() === '' || line.trimStart().startsWith('#')) continue
    const [, word = '', rest = ''] = INSTRUCTION.exec(line) ?? []
    const name = word.toUpperCase()
    if (!known.has(name)) throw malformed('modelfile', `has a line that is not an instruction: ${line.trim().slice(0, 60)}`)
    let value = rest.trim()
    if (value.startsWith('"""') && !(value.length >= 6 && value.endsWith('"""'))) {
      // its end may be many lines further on
      const pieces = [value]
      while (++at < lines.length) {
        pieces.push(lines[at]!)
        if (lines[at]!.trimEnd().endsWith('"""')) break
      }
      value = pieces.join('\n')
    }
    yield { name, value }
  }
}

function unquoted (text: string): string {
  return text.length >= 2 && text.startsWith('"') && text.endsWith('"') ? text.slice(1, -1) : text
}
