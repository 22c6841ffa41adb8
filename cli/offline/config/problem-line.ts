import type { Finding } from '../../../kernel/contract/index.js'
import { problemText } from '../../../kernel/contract/text/problem-text.js'

/**
 * `slots.port_range_end must not be below port_range_start (line 4)`. A code is told where it says more than that a value
 * is wrong.
 */
export function findingLine ({ path, message, line, code, severity }: Omit<Finding, 'file'>): string {
  const where = line === undefined || message.includes(`line ${line}`) ? '' : ` (line ${line})`
  const isOfFile = code === 'validation.invalid' || code === 'config.parse_error'
  return `${severity === 'warning' ? 'warning: ' : ''}${problemText(path, message)}${where}${isOfFile ? '' : ` [${code}]`}`
}
