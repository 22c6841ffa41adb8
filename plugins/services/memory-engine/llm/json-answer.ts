import { PermanentFailure } from '../operations/operation.js'

const SHOWN = 120

/**
 * The object of a model's answer: JSON and nothing else but a code fence or its thoughts around it. Throws a
 * `PermanentFailure`: asked the same again, a model mostly says the same again, and pays for it again.
 */
export function jsonAnswer (text: string, what: string): Readonly<Record<string, unknown>> {
  const said = text.replace(/^\s*<think>[\s\S]*?<\/think>/, '').trim()
  const fenced = /^```(?:json)?\s*\n([\s\S]*?)\n?```$/.exec(said)
  let value: unknown
  try {
    value = JSON.parse(fenced?.[1] ?? said)
  } catch {
    throw new PermanentFailure(`the model answered ${what} with something that is not JSON: ${shown(said)}`)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new PermanentFailure(`the model answered ${what} with something that is not a JSON object: ${shown(said)}`)
  }
  return value as Readonly<Record<string, unknown>>
}

function shown (said: string): string {
  const line = said.replaceAll(/\s+/g, ' ')
  return line === '' ? 'an empty answer' : line.length <= SHOWN ? line : `${line.slice(0, SHOWN)}…`
}

export function listOf (value: unknown, at: string, what: string): readonly unknown[] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value)) throw new PermanentFailure(`the model answered ${what} in an unexpected format: ${at} is not a list`)
  return value
}

/** A text of an answer, without blanks around it. */
export function textOf (value: unknown, at: string, what: string): string {
  if (typeof value !== 'string' || value.trim() === '') {
    throw new PermanentFailure(`the model answered ${what} in an unexpected format: ${at} is not a string`)
  }
  return value.trim()
}
