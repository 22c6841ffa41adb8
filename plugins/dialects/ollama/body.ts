import { jsonExcess } from 'svc-gateway/plugin'
import { bodyObject, malformed, textOr, type Json } from '../../v1/over-chat/ref.js'

/** As deep and wide as what goes to `/v1` may be. */
const bounds = { depth: 1_000, keys: 10_000, values: 1_000_000 }

/** The body of a request. Throws `request.too_complex`, `request.invalid_json`, `request.not_an_object`. */
export function askedIn (body: Buffer): Json {
  const excess = jsonExcess(body, bounds)
  if (excess !== null) throw excess
  return bodyObject(body)
}

/** The model that a body names; older clients call it `name`. Throws `validation.invalid`. */
export function modelIn ({ model, name }: Json): string {
  const said = textOr(model, '') || textOr(name, '')
  if (said.trim() === '') throw malformed('model', 'is required')
  return said.trim()
}

/** Streams are what clients get that do not say. */
export function isStream ({ stream }: Json): boolean {
  return stream !== false
}

/** What of the top of a body means nothing here, for people. Pure. */
export function unknownKeys (asked: Json, known: ReadonlySet<string>): string[] {
  return Object.keys(asked).filter(key => !known.has(key) && asked[key] !== null).slice(0, 20)
    .map(key => `${key.slice(0, 64)}: not known here and left out`)
}
