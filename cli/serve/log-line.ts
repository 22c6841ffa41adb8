import { z } from 'zod'
import { foldLines, harmless, textWidth } from '../terminal/text-width.js'

const lineSchema = z.looseObject({ level: z.string(), time: z.union([z.string(), z.number()]), msg: z.string().default('') })

const levelColours: Readonly<Record<string, number>> = { fatal: 31, error: 31, warn: 33, info: 36 }
const DIM = 2

/** Where the message begins, behind time and level. */
const LEAD = 15
/** Narrower than this, folding helps no reader. */
const LEAST_FOLD = 20

export interface LineStyle {
  readonly coloured: boolean
  /** Columns of the terminal; without it nothing is folded. */
  readonly width?: number
}

/** One JSON line of the log for people: `12:00:01 warn  message  key=value`. Anything else is left as it is. */
export function readableLogLine (line: string, { coloured, width }: LineStyle): string {
  const parsed = lineSchema.safeParse(parse(line))
  if (!parsed.success) return line.trimEnd()
  const { level, time, msg, err, ...fields } = parsed.data
  const paint = (code: number, text: string): string => coloured ? `\u001b[${code}m${text}\u001b[0m` : text
  const rest = Object.entries(fields).filter(([key, value]) => value !== null && !isTold(key, value, msg, fields))
    .map(([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`).join(' ')
  const stack = stackOf(err)
  const room = width === undefined ? Infinity : Math.max(LEAST_FOLD, width - LEAD)
  const body = bodyLines(harmless(msg), harmless(rest), room, text => paint(DIM, text)).join(`\n${' '.repeat(LEAD)}`)
  return harmless(clockOf(time)) + ' ' + paint(levelColours[level] ?? DIM, level.padEnd(5)) + ' ' + body +
    (stack === null ? '' : `\n${paint(DIM, harmless(stack))}`)
}

/** The message, and its fields beside it where they have room, else on lines of their own. */
function bodyLines (message: string, fields: string, room: number, dim: (text: string) => string): string[] {
  const lines = message.split('\n').flatMap(part => foldLines(part, room))
  if (fields === '') return lines
  const last = lines.pop() ?? ''
  if (textWidth(last) + 2 + textWidth(fields) <= room) return [...lines, `${last}  ${dim(fields)}`]
  return [...lines, last, ...foldLines(fields, room).map(dim)]
}

/** What the sentence says already; of a state line all of it. */
function isTold (key: string, value: unknown, sentence: string, { from, to }: Readonly<Record<string, unknown>>): boolean {
  if (from !== undefined && to !== undefined) return ['slot', 'from', 'to', 'model_id', 'took_s', 'message'].includes(key)
  return typeof value === 'string' && value.length > 1 && sentence.includes(value)
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
