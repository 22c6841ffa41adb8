import { svcError, type JsonBody, type NamedSlotConfig } from 'svc-gateway/plugin'

/**
 * What Kokoro does not refuse and fails on: an input without a word (status 500, or a stream that breaks off) and a voice
 * without a name (500). Throws `validation.invalid`. Pure.
 */
export function refuseEmpty (body: JsonBody, slot: NamedSlotConfig | null): null {
  if (body.string('input')?.trim() === '') throw empty('input', 'must contain at least one word')
  const hasDefault = slot !== null && slot.default_voice !== null
  if (body.string('voice')?.trim() === '' && !hasDefault) throw empty('voice', 'must be a voice; omit it for the default one')
  return null
}

function empty (path: string, message: string): Error {
  return svcError('validation.invalid', `\`${path}\` ${message}`, { param: path, details: { fields: [{ path, message }] } })
}
