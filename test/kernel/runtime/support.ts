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

export { collect, eventually, uniqueName, within } from '../../../kernel/testing/runtime-bench.js'
