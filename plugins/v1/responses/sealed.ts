/** What only this gateway can read begins with it. */
const SEALED = 'svc1.'

/** A text as `encrypted_content` carries it, for clients that keep nothing else of it. It hides nothing. */
export function sealed (text: string): string {
  return SEALED + Buffer.from(text).toString('base64')
}

/** Null for what was not sealed here. */
export function opened (secret: unknown): string | null {
  if (typeof secret !== 'string' || !secret.startsWith(SEALED)) return null
  return Buffer.from(secret.slice(SEALED.length), 'base64').toString('utf8')
}
