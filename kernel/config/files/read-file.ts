import { readFile, stat } from 'node:fs/promises'
import type { Diagnostic } from '../../contract/index.js'

/** `bad` is a file that is there and cannot be used; `missing` is no problem. */
export type FileText =
  | { readonly status: 'missing' }
  | { readonly status: 'ok', readonly text: string }
  | { readonly status: 'bad', readonly diagnostic: Diagnostic }

/** Far above any configuration written by hand; a stray model file must not be read into memory. */
const MAX_BYTES = 8 * 1024 * 1024

/** Reads a text file, strictly UTF-8. `file` is the name that the diagnostic shows. Never rejects. */
export async function readText (path: string, file: string): Promise<FileText> {
  const bad = (message: string): FileText => ({ status: 'bad', diagnostic: { file, path: '', message } })
  try {
    const stats = await stat(path)
    // a folder cannot be read, and opening a pipe would wait for its writer for ever
    if (!stats.isFile()) return bad(`is ${stats.isDirectory() ? 'a folder' : 'not a regular file'}; a file is needed here`)
    if (stats.size > MAX_BYTES) return bad(`has ${stats.size} bytes; more than ${MAX_BYTES} cannot be a configuration file`)
    const bytes = await readFile(path)
    return { status: 'ok', text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes) }
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (code === 'ENOENT') return { status: 'missing' }
    return bad(readProblem(code, error))
  }
}

function readProblem (code: string | undefined, error: unknown): string {
  switch (code) {
    case 'EACCES':
    case 'EPERM': return `cannot be read: permission denied for the user that runs the gateway (${code})`
    case 'ENOTDIR': return 'cannot be read: a folder on its path is a file (ENOTDIR)'
    case 'ELOOP': return 'cannot be read: its symbolic links form a loop (ELOOP)'
    case 'ERR_ENCODING_INVALID_ENCODED_DATA': return 'is not valid UTF-8; save it as UTF-8 text'
    default: return `cannot be read: ${code ?? (error instanceof Error ? error.name : 'unknown error')}`
  }
}
