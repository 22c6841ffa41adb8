/**
 * Where a browser that lost its stream wants to go on: its `Last-Event-ID`, which names the epoch too. An id of an
 * earlier run of the gateway means everything since the restart. Null when there is none, or it is not ours. Pure.
 */
export function resumePoint (header: string | readonly string[] | undefined, epoch: string): number | null {
  const match = typeof header === 'string' ? /^(.+):(\d{1,15})$/.exec(header) : null
  if (match === null) return null
  return match[1] === epoch ? Number(match[2]) : 0
}
