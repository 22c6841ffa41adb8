import { InvalidArgumentError } from 'commander'
import type { z } from 'zod'
import { ENV_NAME_PATTERN } from '../kernel/contract/schemas/index.js'

/** Reads a number whose bounds the schema of the field knows. */
export function numberOf (schema: z.ZodType): (text: string) => number {
  return text => {
    const value = text.trim() === '' ? NaN : Number(text)
    const problem = Number.isNaN(value) ? 'It must be a number.' : problemOf(schema, value)
    if (problem !== null) throw new InvalidArgumentError(problem)
    return value
  }
}

export function textOf (schema: z.ZodType): (text: string) => string {
  return text => {
    const problem = problemOf(schema, text)
    if (problem !== null) throw new InvalidArgumentError(problem)
    return text
  }
}

/** Collects `KEY=VALUE` of an option that may be given more than once; `KEY` alone takes the variable out. */
export function collectEnv (text: string, before: Readonly<Record<string, string | null>> = {}): Record<string, string | null> {
  const [, name = '', value] = /^([^=]*)(?:=([^]*))?$/.exec(text) ?? []
  if (!ENV_NAME_PATTERN.test(name)) throw new InvalidArgumentError('It must be KEY=VALUE, or KEY to remove it.')
  return { ...before, [name]: value ?? null }
}

export type OptionsOrNone = Readonly<Record<string, unknown>> | 'none'

/** Collects `key=value` of options of an engine: numbers, `true` and `false` are taken as such, lists and tables as JSON. */
export function collectOption (text: string, before: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  const [, key = '', value] = /^([^=]*)(?:=([^]*))?$/.exec(text) ?? []
  if (!/^[A-Za-z0-9_-]+$/.test(key)) throw new InvalidArgumentError('It must be key=value, or key to remove it.')
  return { ...before, [key]: value === undefined ? null : valueOf(value) }
}

/** As `collectOption`, or `none`, which takes all of them out. */
export function collectOptionOrNone (text: string, before?: OptionsOrNone): OptionsOrNone {
  return text === 'none' ? text : collectOption(text, before === 'none' ? {} : before)
}

function valueOf (text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}

/** `none` takes the value out. */
export function orNone (value: string): string | null {
  return value === 'none' ? null : value
}

function problemOf (schema: z.ZodType, value: unknown): string | null {
  const checked = schema.safeParse(value)
  return checked.success ? null : `It ${sentence(checked.error.issues[0]!)}.`
}

function sentence (issue: z.core.$ZodIssue): string {
  if (issue.code === 'too_small') return `must be at least ${String(issue.minimum)}`
  if (issue.code === 'too_big') return `must be at most ${String(issue.maximum)}`
  if (issue.code === 'invalid_type') return `must be ${issue.expected === 'int' ? 'a whole number' : `a ${issue.expected}`}`
  return issue.message
}
