import { memoryApiError } from './errors.js'

export const BANK_PATTERN = '^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$'
export const SEGMENT_PATTERN = '^(?!\\.{1,2}$)[A-Za-z0-9._:-]{1,256}$'

const BANK = new RegExp(BANK_PATTERN)
const SEGMENT = new RegExp(SEGMENT_PATTERN)

/** Throws `memory.invalid_bank`. */
export function checkBank (bank: string): void {
  if (BANK.test(bank)) return
  throw memoryApiError('memory.invalid_bank', 'the id of a bank has at most 128 letters, digits, _ and -, and starts with a letter or digit; banks with other names are available below /api/memory/hindsight', { param: 'bank' })
}

/** Throws `memory.invalid_path`. */
export function checkSegment (value: string, name: string): void {
  if (SEGMENT.test(value)) return
  throw memoryApiError('memory.invalid_path', `${name} has at most 256 letters, digits and . _ : -`, { param: name })
}
