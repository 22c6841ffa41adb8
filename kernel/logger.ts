import { pino } from 'pino'
import { shownFacts, shownMessage, type Logger } from './contract/index.js'

/** Lines have the name of their level, the time as ISO 8601, and neither host nor process. */
export const lineOptions = {
  base: null,
  timestamp: pino.stdTimeFunctions.isoTime,
  formatters: { level: (label: string) => ({ level: label }) }
}

/** JSON lines on standard error. `SVC_LOG_LEVEL` wins over the default `info`. */
export function createLogger (env: Readonly<Record<string, string | undefined>>, level = 'info'): Logger & { level: string } {
  return pino({ ...lineOptions, level: env.SVC_LOG_LEVEL ?? level }, pino.destination({ fd: 2, sync: true }))
}

/** The same log, in whose lines nothing stands at the length that a client gave it. */
export function withShortText (log: Logger): Logger {
  const line = (level: keyof Logger) => (first: object | string, message?: string): void => {
    if (typeof first === 'string') log[level](shownMessage(first))
    else if (message === undefined) log[level](shownFacts(first as Record<string, unknown>))
    else log[level](shownFacts(first as Record<string, unknown>), shownMessage(message))
  }
  return { debug: line('debug'), info: line('info'), warn: line('warn'), error: line('error') }
}

/** The same log, every line marked with the plugin it comes from. */
export function withPlugin (log: Logger, plugin: string): Logger {
  const line = (level: keyof Logger) => (first: object | string, message?: string): void => {
    if (typeof first === 'string') log[level]({ plugin }, first)
    else log[level]({ ...first, plugin }, message)
  }
  return { debug: line('debug'), info: line('info'), warn: line('warn'), error: line('error') }
}
