import { messageOf, svcError, type SvcError } from '../../contract/index.js'
import type { ProcessRecord } from './process-record.js'

export function engineGone (id: string): SvcError {
  return svcError('runtime.not_found', `no engine process has the id ${id}; it was removed`, { details: { id } })
}

export function recordNotWritten (record: ProcessRecord, folder: string, cause: unknown): SvcError {
  return svcError('runtime.failed',
    `the record of engine ${record.spec.name} cannot be written: ${messageOf(cause)}; check space and permissions of ${folder}`,
    { details: { id: record.id }, cause })
}

export function spawnFailed (command: string, workingDir: string | null, cause: unknown): SvcError {
  const code = (cause as NodeJS.ErrnoException).code
  const where = workingDir === null ? '' : ` in ${workingDir}`
  const why = code === 'ENOENT' ? 'there is no such program or folder; install it or correct the path'
    : code === 'EACCES' ? 'it may not be executed; check its permissions' : messageOf(cause)
  return svcError('runtime.failed', `cannot run ${command}${where}: ${why}`, {
    details: { command, code: code ?? null }, cause, ...(code === 'ENOENT' || code === 'EACCES' ? { heals: false } : {})
  })
}

export function undying ({ id, leader, spec }: ProcessRecord): SvcError {
  return svcError('runtime.failed',
    `processes of engine ${spec.name} cannot be killed, group ${leader?.group ?? 'unknown'}; check them with ps: a driver may hang`,
    { details: { id, pid: leader?.pid ?? null } })
}
