import { randomBytes } from 'node:crypto'
import type { Clock, Logger } from '../../../kernel/contract/index.js'

/** Real time. Its timers keep the process alive, so that one that was forgotten shows as a test that does not end. */
export const realClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimer (ms, fn) {
    const timer = setTimeout(fn, ms)
    return { cancel: () => clearTimeout(timer) }
  }
}

export interface RecordingLogger extends Logger {
  readonly lines: string[]
}

export function recordingLogger (): RecordingLogger {
  const lines: string[] = []
  const at = (level: string) => (first: object | string, message?: string): void => {
    lines.push(`${level} ${typeof first === 'string' ? first : `${message ?? ''} ${JSON.stringify(first)}`}`)
  }
  return { lines, debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

export function uniqueName (prefix: string): string {
  return `${prefix}-${randomBytes(4).toString('hex')}`
}

/** Polls a condition, for at most `withinMs`; the error of the last try explains a failure. */
export async function eventually<T> (what: string, attempt: () => Promise<T> | T, withinMs = 30_000): Promise<NonNullable<T>> {
  const deadline = performance.now() + withinMs
  for (;;) {
    try {
      const result = await attempt()
      if (result !== false && result !== null && result !== undefined) return result as NonNullable<T>
      throw new Error('not yet')
    } catch (error) {
      if (performance.now() > deadline) throw new Error(`${what}: not within ${withinMs} ms`, { cause: error })
      await new Promise(resolve => setTimeout(resolve, 20))
    }
  }
}

/** Rejects when `promise` takes longer: a hang becomes a failure that names what hung. */
export async function within<T> (ms: number, what: string, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: not within ${ms} ms`)), ms)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

export async function collect (lines: AsyncIterable<string>): Promise<string[]> {
  const all: string[] = []
  for await (const line of lines) all.push(line)
  return all
}
