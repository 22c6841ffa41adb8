import { ENV_NAME_PATTERN, svcError } from '../../contract/index.js'
import { writeFileAtomic } from '../files/atomic-file.js'
import { configFiles } from '../parts/config-parts.js'
import { readText } from '../files/read-file.js'
import { isReservedVariable } from '../load/reserved-variables.js'
import { removeSecretLines, setSecretLine } from '../load/secrets-env.js'
import type { WriterContext } from '../files/writer-context.js'
import { parseFailed, writeFailed } from '../files/write-errors.js'

/** Longest value, in characters: keys are far shorter, and programs take no variable of any length. */
const MAX_VALUE = 8192

/** Sets or, with null, removes a line of api.env. The file is mode 0600 afterwards, whatever it was. */
export async function writeSecret (context: WriterContext, name: string, value: string | null): Promise<void> {
  if (!ENV_NAME_PATTERN.test(name)) throw invalidSecret('name', 'must match [A-Za-z_][A-Za-z0-9_]*')
  if (value !== null && isReservedVariable(name)) {
    throw svcError('secret.name_invalid',
      `${name} controls programs and is not a secret: units read this file as their environment; choose another name`, { param: 'name' })
  }
  // systemd reads the same file, and it ends a value at the line's end
  if (value !== null && /[\0-\x1f\x7f]|\p{Cs}/u.test(value)) throw invalidSecret('value', 'must be one line without control characters')
  if (value !== null && value.length > MAX_VALUE) throw invalidSecret('value', `must have at most ${MAX_VALUE} characters`)
  const { paths, ops } = context
  const read = await readText(paths.secretsEnv, configFiles.secrets)
  if (read.status === 'bad') throw parseFailed([read.diagnostic])
  const text = read.status === 'ok' ? read.text : ''
  const next = value === null ? removeSecretLines(text, name) : setSecretLine(text, name, value)
  if (next === text) return
  await writeFileAtomic(paths.secretsEnv, next, { mode: 0o600, forceMode: true, ...(ops === undefined ? {} : { ops }) })
    .catch(error => { throw writeFailed(paths.etc, paths.secretsEnv, error) })
}

function invalidSecret (path: string, message: string): Error {
  return svcError('validation.invalid', `secret ${path} ${message}`, { details: { fields: [{ path, message }] }, param: path })
}
