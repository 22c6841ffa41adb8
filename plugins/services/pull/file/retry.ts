import { isSvcError, messageOf, retryAfterS, type SvcError } from 'svc-gateway/plugin'
import { hfError } from '../../hub/ref.js'
import { modelError } from '../errors.js'

export type Verdict =
  | { readonly kind: 'retry', readonly waitS: number, readonly why: string }
  | { readonly kind: 'fail', readonly error: SvcError }

export interface RetryRules {
  readonly maxTries: number
  readonly baseS: number
  /** 0 to 1: spreads callers that failed together. */
  readonly random: () => number
}

const MAX_WAIT_S = 60
/** Longest time a server may send us away for; longer, the user should know. */
const MAX_RETRY_AFTER_S = 1800

const final: ReadonlySet<string> = new Set([
  'hf.gated', 'hf.token_rejected', 'hf.repo_not_found', 'hf.file_not_found', 'hf.bad_request', 'pull.checksum_mismatch', 'pull.size_mismatch',
  'model.insufficient_disk', 'model.pull_failed'
])

const full: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT'])
const disk: ReadonlySet<string> = new Set([
  'EACCES', 'EPERM', 'EROFS', 'EIO', 'EISDIR', 'ENOTDIR', 'EEXIST', 'EFBIG', 'EMFILE', 'ENFILE', 'ELOOP', 'ENAMETOOLONG', 'ENOENT', 'ENXIO', 'ESTALE', 'EXDEV'
])

/** What to do about a failure. `tries` counts failures in a row, this one included, with no byte between them. Pure. */
export function verdictOn (error: unknown, tries: number, { maxTries, baseS, random }: RetryRules): Verdict {
  if (isSvcError(error) && final.has(error.code)) return { kind: 'fail', error }
  const code = (error as NodeJS.ErrnoException | null)?.code ?? ''
  if (full.has(code)) {
    return { kind: 'fail', error: modelError('model.insufficient_disk', 'the disk is full; make room and pull again: what has been downloaded is kept', { cause: error }) }
  }
  if (disk.has(code)) {
    return { kind: 'fail', error: modelError('model.pull_failed', `the file cannot be written: ${messageOf(error)}`, { cause: error }) }
  }
  const asked = isSvcError(error) ? retryAfterS(error) : null
  if (tries >= maxTries || (asked !== null && asked > MAX_RETRY_AFTER_S)) return { kind: 'fail', error: asFailure(error) }
  return { kind: 'retry', waitS: asked ?? backoffS(baseS, tries) * (0.75 + random() / 2), why: messageOf(error) }
}

export function backoffS (baseS: number, tries: number): number {
  return Math.min(MAX_WAIT_S, baseS * 2 ** (tries - 1))
}

const local: ReadonlySet<string> = new Set(['model.pull_failed', 'config.write_failed'])

/** A failure of this machine's own files, but for one that is full. Pure. */
export function isLocal (error: unknown): boolean {
  const cause = isSvcError(error) && local.has(error.code) ? error.cause : error
  const code = (cause as NodeJS.ErrnoException | null | undefined)?.code ?? ''
  return disk.has(code)
}

function asFailure (error: unknown): SvcError {
  if (isSvcError(error)) return error
  return hfError('hf.unreachable', `the download keeps failing without progress: ${messageOf(error)}; pull again to resume`, { cause: error })
}
