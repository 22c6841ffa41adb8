import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

const SAFE = /^[A-Za-z0-9._:-]{1,128}$/

/** Unique over processes by its random part, inside one by the count: cheaper than a UUID on every request. */
const run = randomBytes(9).toString('base64url')
let count = 0

/** The caller's `X-Request-ID` when it is harmless in logs and headers, else a new one. */
export function requestIdOf (request: Pick<IncomingMessage, 'headers'>): string {
  const given = request.headers['x-request-id']
  return typeof given === 'string' && SAFE.test(given) ? given : `req-${run}-${(++count).toString(36)}`
}
