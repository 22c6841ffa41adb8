import type { Diagnostic } from '../../../kernel/contract/index.js'

/** `slots.port_range_end must not be below port_range_start (line 4)`. */
export function problemLine ({ path, message, line }: Omit<Diagnostic, 'file'>): string {
  const where = line === undefined || message.includes(`line ${line}`) ? '' : ` (line ${line})`
  return `${path === '' ? '' : `${path} `}${message}${where}`
}
