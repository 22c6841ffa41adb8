import type { Json } from '../../v1/over-chat/ref.js'

/**
 * A member of one of the API's own messages, which Google's JSON takes by either name: `systemInstruction` or
 * `system_instruction`. Null where it is not given. Pure.
 */
export function member (message: Json, name: string): unknown {
  return message[name] ?? message[name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)] ?? null
}

/** The name of a key as the documents spell it. Pure. */
export function camelCase (key: string): string {
  return key.replace(/(?<=[a-z0-9])_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
}
