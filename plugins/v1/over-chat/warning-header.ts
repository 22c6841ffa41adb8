import { MOST_WARNINGS } from './left-out.js'

/** The name of the header that tells what of a request was left out. */
export const WARNING_HEADER = 'x-svc-warning'

/** Clients and proxies bound all headers of an answer together, some at 8 KiB. */
const LONGEST = 1000
/** For the words that tell how many more there are. */
const ROOM = 30

/** What was left out of a request, as a header. One that would be too long ends with how many more warnings there are. Pure. */
export function warningHeader (warnings: readonly string[]): Record<string, string> {
  if (warnings.length === 0) return {}
  const all = warnings.map(plain)
  const whole = all.join('; ')
  if (whole.length <= LONGEST) return { [WARNING_HEADER]: whole }
  if (all.length === 1) return { [WARNING_HEADER]: whole.slice(0, LONGEST) }
  let told = all[0]!.slice(0, LONGEST - ROOM)
  let count = 1
  while (told.length + 2 + all[count]!.length <= LONGEST - ROOM) told += `; ${all[count++]!}`
  // a list that is full may have left out more
  const least = all.length >= MOST_WARNINGS ? 'at least ' : ''
  return { [WARNING_HEADER]: `${told}; and ${least}${all.length - count} more` }
}

/** Headers carry printable ASCII alone. */
function plain (text: string): string {
  return text.replace(/[^\x20-\x7e]/g, '?')
}
