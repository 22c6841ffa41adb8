import type { IncomingHttpHeaders } from 'node:http'

/** What a request that is kept has at most, in bytes: it is read and written in one go. */
export const MOST_KEPT_BYTES = 16 * 1024 * 1024

/** Whether a request asks for nothing of it to be kept on this machine. */
export function isPrivate ({ 'x-svc-private': header }: IncomingHttpHeaders): boolean {
  return typeof header === 'string' && /^(?:1|true|yes|on)$/i.test(header.trim())
}
