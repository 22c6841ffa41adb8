import type { BodyEdits, JsonBody, NamedSlotConfig } from 'svc-gateway/plugin'

/**
 * What a speech request leaves open, from the slot that serves it. Absent, null and, for
 * the two names, an empty text all leave it open; any other value of the request wins. An upstream has no defaults.
 * Pure.
 */
export function speechDefaults (body: JsonBody, slot: NamedSlotConfig | null): BodyEdits | null {
  if (slot === null) return null
  const { default_voice: voice, default_speed: speed, default_response_format: format } = slot
  if (voice === null && speed === null && format === null) return null
  const emptied = (key: string, value: string | null): Record<string, unknown> =>
    value !== null && body.string(key) === '' ? { [key]: value } : {}
  return {
    set: { ...emptied('voice', voice), ...emptied('response_format', format) },
    add: { voice: voice ?? undefined, speed: speed ?? undefined, response_format: format ?? undefined }
  }
}
