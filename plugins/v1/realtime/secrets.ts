import { randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Clock } from 'svc-gateway/plugin'
import type { Json } from '../over-chat/ref.js'
import { realtimeError } from './errors.js'

const MOST = 1_000
/** Of all of them together, as JSON. */
const MOST_CHARACTERS = 8 * 1024 * 1024
/** Where browsers, which cannot send a header, have the key. */
const PROTOCOL = /(?:^|,)\s*openai-insecure-api-key\.([\w.-]+)\s*(?:,|$)/

interface Kept {
  readonly session: Json
  readonly length: number
  /** On the monotonic clock, in milliseconds. */
  readonly until: number
}

/** Keys with which a browser opens a session that was fixed for it before. They open nothing that is closed without. */
export class Secrets {
  readonly #clock: Clock
  readonly #kept = new Map<string, Kept>()
  #length = 0

  constructor (clock: Clock) {
    this.#clock = clock
  }

  /** The oldest go where there are too many. */
  make (session: Json, seconds: number): string {
    const value = `ek_${randomBytes(24).toString('base64url')}`
    const kept = { session, length: JSON.stringify(session).length, until: this.#clock.monotonic() + seconds * 1000 }
    this.#kept.set(value, kept)
    this.#length += kept.length
    for (const [oldest, { length, until }] of this.#kept) {
      const isOver = until <= this.#clock.monotonic()
      if (oldest === value || (!isOver && this.#kept.size <= MOST && this.#length <= MOST_CHARACTERS)) break
      this.#kept.delete(oldest)
      this.#length -= length
    }
    return value
  }

  /** The session that the key of a request is for; null for any other key. Throws `realtime.secret_unknown`. */
  sessionFor ({ authorization = '', 'sec-websocket-protocol': protocols = '' }: IncomingHttpHeaders): Json | null {
    const key = PROTOCOL.exec(protocols)?.[1] ?? /^bearer (\S+)$/i.exec(authorization)?.[1]
    if (key?.startsWith('ek_') !== true) return null
    const kept = this.#kept.get(key)
    if (kept !== undefined && kept.until > this.#clock.monotonic()) return kept.session
    throw realtimeError('realtime.secret_unknown', 'the key was not issued by this gateway, or has expired: get a new one from POST /v1/realtime/client_secrets')
  }
}
