import { createHash } from 'node:crypto'
import { readdir, readFile, stat } from 'node:fs/promises'
import { extname, join, relative } from 'node:path'

export interface LegacyNote {
  /** The same at every reading. */
  readonly id: string
  readonly text: string
  /** Its file, below the folder. */
  readonly source: string
}

export interface LegacyFolder {
  readonly files: number
  readonly notes: readonly LegacyNote[]
  readonly skipped: ReadonlyArray<{ readonly file: string, readonly reason: string }>
}

const MOST_FILES = 100_000
const LARGEST_FILE = 16 * 1024 * 1024
const LONGEST_TEXT = 1_000_000
const kinds = new Set(['.txt', '.md', '.json', '.jsonl'])

/** What the folder of a former memory engine holds as text. One that is not there holds nothing. */
export async function readLegacy (folder: string): Promise<LegacyFolder> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => [])
  const files = entries.filter(entry => entry.isFile()).map(({ parentPath, name }) => relative(folder, join(parentPath, name)))
    .sort().slice(0, MOST_FILES)
  const notes: LegacyNote[] = []
  const skipped: Array<{ file: string, reason: string }> = []
  for (const file of files) {
    const found = await readOne(join(folder, file))
    if (typeof found === 'string') {
      skipped.push({ file, reason: found })
      continue
    }
    for (const [i, text] of found.entries()) notes.push({ id: idOf(file, i), text, source: file })
  }
  return { files: files.length, notes, skipped }
}

/** The texts of a file, or why it has none. */
async function readOne (path: string): Promise<readonly string[] | string> {
  const kind = extname(path).toLowerCase()
  if (!kinds.has(kind)) return 'is no text'
  if ((await stat(path)).size > LARGEST_FILE) return `is larger than ${LARGEST_FILE / 1024 / 1024} MiB`
  const content = await readFile(path, 'utf8')
  let texts: readonly string[]
  try {
    texts = kind === '.json' ? textsIn(JSON.parse(content) as unknown)
      : kind === '.jsonl' ? content.split('\n').filter(line => line.trim() !== '').flatMap(line => textsIn(JSON.parse(line) as unknown))
        : [content]
  } catch {
    return 'is no JSON'
  }
  const kept = texts.map(text => text.trim()).filter(text => text !== '' && text.length <= LONGEST_TEXT)
  return kept.length === 0 ? 'has no text that could be remembered' : kept
}

/** A text, a row with one, or a list of either. */
function textsIn (value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (Array.isArray(value)) return value.flatMap(textsIn)
  if (typeof value !== 'object' || value === null) return []
  const { text, content, memory, data, memories } = value as Record<string, unknown>
  const own = [text, content, memory].find(one => typeof one === 'string')
  return own === undefined ? textsIn(data ?? memories) : [own as string]
}

function idOf (file: string, at: number): string {
  return `legacy-${createHash('sha256').update(`${file}\n${at}`).digest('hex').slice(0, 40)}`
}
