import { svcError } from '../../contract/index.js'
import { allDiagnostics, type ConfigParts } from '../parts/config-parts.js'
import { parseFailed } from '../files/write-errors.js'

/**
 * The gateway does not start on a broken svc.toml. Running on defaults instead would open another port, evict by other
 * limits or forget who may call; leaving out single keys does the same more quietly. Every other file costs only what it
 * describes. The error lists the problems of all files, so that one round of repairs is enough.
 */
export function refuseStart (parts: ConfigParts): void {
  if (parts.svc.diagnostics.length === 0) return
  const all = allDiagnostics(parts)
  if (parts.svc.diagnostics.some(diagnostic => diagnostic.path === '' || diagnostic.path === 'meta.schema_version')) throw parseFailed(all)
  const listed = parts.svc.diagnostics.map(({ path, message, line }) => `${path} ${message}${line === undefined ? '' : ` (line ${line})`}`)
  throw svcError('validation.invalid', `svc.toml is not valid: ${listed.join('; ')}; fix it and start again`, {
    details: { summary: 'svc.toml is not valid; fix it and start again', fields: parts.svc.diagnostics.map(({ path, message }) => ({ path, message })), diagnostics: all }
  })
}
