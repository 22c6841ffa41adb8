import { readFileSync } from 'node:fs'
import { SourceMap, type SourceMapPayload } from 'node:module'
import { join } from 'node:path'

/**
 * With `--enable-source-maps` stack traces name the sources, also in the chunks of this bundle, which Node does not know
 * as modules. Without it they name functions and lines of the bundle, whose code is as it was written.
 */
export function nameSources (folder: string): void {
  if (!process.execArgv.includes('--enable-source-maps') && !(process.env.NODE_OPTIONS ?? '').includes('--enable-source-maps')) return
  const maps = new Map<string, SourceMap | null>()
  const mapOf = (file: string): SourceMap | null => {
    if (!maps.has(file)) maps.set(file, read(`${file}.map`))
    return maps.get(file)!
  }
  Error.prepareStackTrace = (error, frames) => [String(error), ...frames.map(frame => {
    const file = frame.getFileName()
    const [line, column] = [frame.getLineNumber(), frame.getColumnNumber()]
    const shown = frame.toString()
    if (file?.startsWith(folder) !== true || line === null || column === null) return `    at ${shown}`
    const entry = mapOf(file)?.findEntry(line - 1, column - 1)
    if (entry === undefined || !('originalSource' in entry)) return `    at ${shown}`
    return `    at ${shown.replace(`${file}:${line}:${column}`, `${join(folder, entry.originalSource)}:${entry.originalLine + 1}:${entry.originalColumn + 1}`)}`
  })].join('\n')
}

function read (path: string): SourceMap | null {
  try {
    return new SourceMap(JSON.parse(readFileSync(path, 'utf8')) as SourceMapPayload)
  } catch {
    return null
  }
}
