import type { ToolEntry } from 'svc-gateway/plugin'

interface IndexedTool {
  readonly entry: ToolEntry
  readonly name: string
  readonly words: ReadonlySet<string>
}

/** What a word counts for by where it stands. */
const IN_NAME = 4
const PART_OF_NAME = 2
const IN_WORDS = 1

/** Tools by words of their names, titles, descriptions and arguments. */
export class ToolIndex {
  readonly #tools: readonly IndexedTool[]

  constructor (entries: readonly ToolEntry[]) {
    this.#tools = entries.map(entry => ({
      entry, name: entry.name.toLowerCase(), words: new Set(wordsOf(`${entry.title ?? ''} ${entry.description} ${argumentsOf(entry)}`))
    }))
  }

  /** Best first, then in the order of the list; all of them for a query without a word. */
  find (query: string): readonly ToolEntry[] {
    const wanted = [...new Set(wordsOf(query))].map(word => {
      const found = new Map(this.#tools.flatMap((tool): [IndexedTool, number][] => {
        const value = valueOf(tool, word)
        return value === 0 ? [] : [[tool, value]]
      }))
      // a word that every tool has says nothing of any
      return { found, weight: Math.log(1 + this.#tools.length / (1 + found.size)) }
    })
    if (wanted.length === 0) return this.#tools.map(({ entry }) => entry)
    const scoreOf = (tool: IndexedTool): number =>
      wanted.reduce((sum, { found, weight }) => sum + weight * (found.get(tool) ?? 0), 0)
    return this.#tools
      .map(tool => ({ entry: tool.entry, score: scoreOf(tool) }))
      .filter(({ score }) => score > 0)
      .sort((a, b) => b.score - a.score)
      .map(({ entry }) => entry)
  }
}

function valueOf ({ name, words }: IndexedTool, word: string): number {
  const own = name.split(/[_-]/).includes(word) ? IN_NAME : name.includes(word) ? PART_OF_NAME : 0
  return own + (words.has(word) ? IN_WORDS : 0)
}

/** Without the s of a plural: `notes` finds `note`. */
function wordsOf (text: string): readonly string[] {
  const words = text.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter(word => word !== '')
  return words.map(word => word.length > 3 ? word.replace(/s$/, '') : word)
}

function argumentsOf ({ inputSchema: { properties } }: ToolEntry): string {
  return typeof properties === 'object' && properties !== null ? Object.keys(properties).join(' ').replaceAll('_', ' ') : ''
}
