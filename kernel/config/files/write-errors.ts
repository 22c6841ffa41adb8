import { relative } from 'node:path'
import { svcError, type Diagnostic, type SvcError } from '../../contract/index.js'
import { problemText } from '../../contract/text/problem-text.js'

const reasons: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full; free some space and try again',
  EDQUOT: 'the disk quota is used up; free some space and try again',
  EROFS: 'the file system is read-only; mount it writable or choose another SVC_HOME',
  EACCES: 'permission denied; the user that runs the gateway must be able to write there, or choose another SVC_HOME',
  EPERM: 'permission denied; the user that runs the gateway must be able to write there, or choose another SVC_HOME',
  EISDIR: 'it is a folder; remove it',
  ENOTDIR: 'a folder on its path is a file; remove that file',
  ENOENT: 'a folder on its path is not there and cannot be made; choose another place',
  EMFILE: 'the process has too many open files'
}

/** What is wrong and what mends it, for an error of the file system that people meet; else its code. */
export function fileTrouble (code: string): string {
  return `${reasons[code] ?? code} (${code})`
}

/** `config.write_failed` for an error of the file system. `root` is what the shown path is below; null shows all of it. */
export function writeFailed (root: string | null, path: string, cause: unknown): SvcError {
  const code = (cause as NodeJS.ErrnoException | null)?.code ?? 'unknown'
  const shown = root === null ? path : relative(root, path)
  return svcError('config.write_failed', `${shown} cannot be written: ${fileTrouble(code)}`, {
    details: { path: shown, reason: code }, cause
  })
}

/** `config.parse_error` for files that cannot be read or parsed. Lists everything that is wrong. */
export function parseFailed (diagnostics: readonly Diagnostic[]): SvcError {
  const first = diagnostics[0]
  const what = first === undefined ? 'the configuration' : `${first.file} ${problemText(first.path, first.message)}`
  const more = diagnostics.length > 1 ? `, and ${diagnostics.length - 1} more` : ''
  return svcError('config.parse_error', `${what}${more}; fix the file and try again`, {
    details: { diagnostics, summary: `${diagnostics.length} problems in the configuration; fix them and try again` }
  })
}
