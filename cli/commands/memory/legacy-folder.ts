import { createHash } from 'node:crypto'
import { readdir, readFile, stat } from 'node:fs/promises'
import { extname, join, relative } from 'node:path'
import { CliFailure } from '../../failure.js'

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

/**
 * What the folder of a former memory engine holds as text; nothing where it is not there. Throws where it cannot be read.
 * @param most how many of its files are read, in the order of their names
 */
export async function readLegacy (folder: string, most = MOST_FILES): Promise<LegacyFolder> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw new CliFailure(`${folder} cannot be read: ${error.message}`)
  })
  const all = entries.filter(entry => entry.isFile()).map(({ parentPath, name }) => relative(folder, join(parentPath, name)))
    .sort()
  const files = all.slice(0, most)
  const notes: LegacyNote[] = []
  const skipped: Array<{ file: string, reason: string }> = []
  for (const file of files) {
    const { texts, reason } = await readOne(join(folder, file))
      .catch((error: Error) => ({ texts: [], reason: `cannot be read: ${error.message}` }))
    if (reason !== null) skipped.push({ file, reason })
    for (const [i, text] of texts.entries()) notes.push({ id: idOf(file, i), text, source: file })
  }
  const [first] = all.slice(most)
  if (first !== undefined) skipped.push({
    file: first,
    reason: `is skipped with all files after it (${all.length - most} with this one): at most ${most} are read. Import them from a folder of their own`
  })
  return { files: files.length, notes, skipped }
}

interface Read {
  readonly texts: readonly string[]
  /** Why that is not all, or nothing; null if it is all. */
  readonly reason: string | null
}

async function readOne (path: string): Promise<Read> {
  const none = (reason: string): Read => ({ texts: [], reason })
  const kind = extname(path).toLowerCase()
  if (!kinds.has(kind)) return none('is no text')
  if ((await stat(path)).size > LARGEST_FILE) return none(`is larger than ${LARGEST_FILE / 1024 / 1024} MiB`)
  const content = await readFile(path, 'utf8')
  let texts: readonly string[]
  try {
    texts = kind === '.json' ? textsIn(JSON.parse(content) as unknown)
      : kind === '.jsonl' ? content.split('\n').filter(line => line.trim() !== '').flatMap(line => textsIn(JSON.parse(line) as unknown))
        : [content]
  } catch {
    return none('is no JSON')
  }
  const all = texts.map(text => text.trim()).filter(text => text !== '')
  if (all.length === 0) return none('has no text to remember')
  const kept = all.filter(text => text.length <= LONGEST_TEXT)
  const left = all.length - kept.length
  return { texts: kept, reason: left === 0 ? null : `${left} of its ${all.length} texts are longer than ${LONGEST_TEXT} characters` }
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
