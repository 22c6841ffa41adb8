import { readFileSync } from 'node:fs'
import { SourceMap, type SourceMapping, type SourceMapPayload } from 'node:module'
import { dirname, join, relative, resolve, sep } from 'node:path'

/** A place in a file of a package. */
export interface Place {
  /** Relative to the package. */
  readonly file: string
  /** From 1. */
  readonly line: number
  /** From 1; the beginning of the line if unknown. */
  readonly column?: number | undefined
}

const MAPPING = /^\/\/[#@] sourceMappingURL=(\S+)\s*$/m
const INLINE = /^data:application\/json;(?:charset=[^;]+;)?base64,/

/**
 * `src/index.ts:12` for code that was built from a source inside of the package and has a source map, else the place as it
 * is. For messages: it reads files, and never throws.
 * @param root the folder of the package
 */
export function sourcePlace (root: string, { file, line, column }: Place): string {
  const map = mapOf(join(root, file))
  if (map === null) return `${file}:${line}`
  // without a column it is the last mapping before the end of the line, if that is one of the line
  const entry: Partial<SourceMapping> = map.findEntry(line - 1, column === undefined ? Infinity : column - 1)
  const { generatedLine, originalSource, originalLine } = entry
  if (originalSource === undefined || originalLine === undefined || generatedLine !== line - 1) return `${file}:${line}`
  const source = relative(root, resolve(root, dirname(file), originalSource))
  // a map may name what was never in this package
  return source === '' || source === '..' || source.startsWith(`..${sep}`) ? `${file}:${line}` : `${source}:${originalLine + 1}`
}

function mapOf (path: string): SourceMap | null {
  try {
    const [, url] = MAPPING.exec(readFileSync(path, 'utf8')) ?? []
    if (url === undefined) return null
    const text = INLINE.test(url)
      ? Buffer.from(url.replace(INLINE, ''), 'base64').toString('utf8')
      : readFileSync(join(dirname(path), decodeURIComponent(url)), 'utf8')
    return new SourceMap(JSON.parse(text) as SourceMapPayload)
  } catch {
    return null
  }
}
