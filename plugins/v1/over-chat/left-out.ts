import type { Json } from './json.js'

/** More than go into the header that tells them. */
export const MOST_WARNINGS = 50

/** A choice that forces a call where all tools were left out. */
export const NO_TOOL_LEFT = 'tool_choice: left out, there is no tool to call'

/** Tells what of a request was left out: once, however often it stands there. */
export function leave (warnings: string[], warning: string): void {
  if (warnings.length < MOST_WARNINGS && !warnings.includes(warning)) warnings.push(warning)
}

/**
 * Tells which members of an object have no place in the other wire format. Those that say nothing (null, an empty text or list,
 * false) are not told.
 * @param at where such objects stand, without numbers: each member is told once for all of them; empty for the body itself
 * @param spelled how `known` spells a member, where a client may write it in several ways
 */
export function leaveStrangers (
  object: Json, known: ReadonlySet<string>, at: string, warnings: string[], spelled: (key: string) => string = key => key
): void {
  if (warnings.length >= MOST_WARNINGS) return
  for (const key of Object.keys(object)) {
    if (known.has(spelled(key)) || saysNothing(object[key])) continue
    leave(warnings, `${at === '' ? '' : `${at}.`}${key.slice(0, 64)}: not known here and left out`)
    if (warnings.length >= MOST_WARNINGS) return
  }
}

function saysNothing (value: unknown): boolean {
  return value === null || value === '' || value === false || (Array.isArray(value) && value.length === 0)
}
