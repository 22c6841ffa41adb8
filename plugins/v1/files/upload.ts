import { formParts, svcError } from 'svc-gateway/plugin'
import type { NewFile } from './store.js'

const MONTH_S = 30 * 86_400
const HOUR_S = 3600
const LONGEST_NAME = 255

/** A form of `POST /v1/files`. Throws `validation.invalid`, which names the field. Pure. */
export function uploadedFile (body: Buffer, contentType: string | undefined): NewFile {
  const parts = formParts(body, contentType)
  const text = (name: string): string | null => parts.find(part => part.name === name && part.filename === null)?.bytes.toString('utf8').trim() ?? null
  const purpose = text('purpose')
  if (purpose !== 'batch') {
    throw wrong('purpose', purpose === null ? 'is missing: the only purpose is `batch`' : 'must be batch: no other purpose is supported')
  }
  const file = parts.find(({ name, filename }) => name === 'file' && filename !== null)
  if (file === undefined) throw wrong('file', 'is missing: send the lines as a file')
  return { filename: shown(file.filename!), purpose, bytes: file.bytes, expiresAfterS: expiry(text) }
}

function expiry (text: (name: string) => string | null): number {
  const [anchor, seconds] = [text('expires_after[anchor]'), text('expires_after[seconds]')]
  if (anchor === null && seconds === null) return MONTH_S
  if (anchor !== 'created_at') throw wrong('expires_after[anchor]', 'must be created_at')
  if (seconds === null || !/^\d{1,9}$/.test(seconds) || Number(seconds) < HOUR_S || Number(seconds) > MONTH_S) {
    throw wrong('expires_after[seconds]', `must be a whole number from ${HOUR_S} to ${MONTH_S}`)
  }
  return Number(seconds)
}

/** A name alone, without folders and what a terminal could take for more. */
function shown (filename: string): string {
  const [name = ''] = filename.split(/[/\\]/).slice(-1)
  return name.replace(/\p{C}/gu, '').slice(0, LONGEST_NAME) || 'file.jsonl'
}

function wrong (field: string, problem: string): Error {
  const message = `${field} ${problem}`
  return svcError('validation.invalid', message, { param: field, details: { fields: [{ path: field, message }] } })
}
