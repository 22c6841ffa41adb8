import { pino } from 'pino'
import type { Logger } from '../../kernel/contract/index.js'
import { createLogger, lineOptions } from '../../kernel/logger.js'
import type { CliProcess } from '../cli.js'
import { readableLogLine } from './log-line.js'

export type LevelledLogger = Logger & { level: string }

/** The log of a gateway at the prompt: readable lines at a terminal, JSON lines everywhere else. */
export function createGatewayLog ({ stderr, env }: CliProcess, level: string): LevelledLogger {
  if (stderr.isTTY !== true) return createLogger({}, level)
  const coloured = (env.NO_COLOR ?? '') === '' && env.TERM !== 'dumb'
  return pino({ ...lineOptions, level }, {
    write: line => {
      // the window may have another width by now
      const { columns: width } = stderr
      stderr.write(`${readableLogLine(line, width === undefined ? { coloured } : { coloured, width })}\n`)
    }
  })
}
