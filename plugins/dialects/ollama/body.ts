import { malformed, MOST_WARNINGS, textOr, type Json } from '../../v1/over-chat/ref.js'

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

/** Told to those who ask for `truncate`. */
export const NOT_CUT = 'truncate: left out, what is too long for the model is refused'

/** What of the top of a body means nothing here, for people. Pure. */
export function unknownKeys (asked: Json, known: ReadonlySet<string>): string[] {
  return Object.keys(asked).filter(key => !known.has(key) && asked[key] !== null).slice(0, MOST_WARNINGS)
    .map(key => `${key.slice(0, 64)}: not known here and left out`)
}
