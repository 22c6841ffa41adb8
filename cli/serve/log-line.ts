import { z } from 'zod'
import { harmless } from '../text-width.js'

const lineSchema = z.looseObject({ level: z.number(), time: z.union([z.string(), z.number()]), msg: z.string().default('') })

const levelNames: ReadonlyArray<readonly [number, string, number]> = [[50, 'error', 31], [40, 'warn', 33], [30, 'info', 36], [0, 'debug', 2]]

/** One JSON line of the log for people: `12:00:01 warn  message  key=value`. Anything else is left as it is. */
export function readableLogLine (line: string, coloured: boolean): string {
  const parsed = lineSchema.safeParse(parse(line))
  if (!parsed.success) return line.trimEnd()
  const { level, time, msg, err, ...fields } = parsed.data
  const [, name, colour] = levelNames.find(([least]) => level >= least) ?? levelNames[3]!
  const paint = (code: number, text: string): string => coloured ? `\u001b[${code}m${text}\u001b[0m` : text
  const rest = Object.entries(fields).filter(([, value]) => value !== null)
    .map(([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`).join(' ')
  const stack = stackOf(err)
  return harmless(clockOf(time)) + ' ' + paint(colour, name.padEnd(5)) + ' ' + harmless(msg) +
    (rest === '' ? '' : `  ${paint(2, harmless(rest))}`) + (stack === null ? '' : `\n${paint(2, harmless(stack))}`)
}

function clockOf (time: string | number): string {
  const date = new Date(time)
  return Number.isNaN(date.getTime()) ? String(time) : date.toTimeString().slice(0, 8)
}

function stackOf (error: unknown): string | null {
  const { stack, message } = (error ?? {}) as { stack?: unknown, message?: unknown }
  if (typeof stack === 'string') return stack
  return typeof message === 'string' ? message : null
}

function parse (line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return null
  }
}
