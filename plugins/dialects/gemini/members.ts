import type { Json } from '../../v1/over-chat/ref.js'

/** Of the names that are asked for here, which are few. */
const snakeNames = new Map<string, string>()

function snakeCase (name: string): string {
  let snake = snakeNames.get(name)
  if (snake === undefined) snakeNames.set(name, snake = name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`))
  return snake
}

/**
 * A member of one of the API's own messages, which Google's JSON takes by either name: `systemInstruction` or
 * `system_instruction`. Null where it is not given. Pure.
 * @param name one that the code names: none of a client's
 */
export function member (message: Json, name: string): unknown {
  return message[name] ?? message[snakeCase(name)] ?? null
}

/** A message with its members under the names of the documents, which win over the others unless they are null. Pure. */
export function named (message: Json): Json {
  const keys = Object.keys(message)
  if (!keys.some(key => key.includes('_', 1))) return message
  const plain = keys.filter(key => camelCase(key) === key && message[key] !== null)
  return Object.fromEntries([...keys, ...plain].map(key => [camelCase(key), message[key]]))
}

/** The name of a key as the documents spell it. Pure. */
export function camelCase (key: string): string {
  return key.includes('_') ? key.replace(/(?<=[a-z0-9])_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase()) : key
}
