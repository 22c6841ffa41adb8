/** What a client on a plain connection sets itself, or what changes how a message is framed. */
const notTaken = new Set(['host', 'connection', 'content-length', 'transfer-encoding', 'keep-alive', 'upgrade', 'expect'])
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const BAD_VALUE = /[^\t\x20-\x7e\x80-\xff]/
const PATH = /^\/[\x21-\x7e]*$/
const MOST_NAMES = 1024
const LONGEST_NAME = 64

/** Names as clients spell them: few, so each is judged once. Bounded against made-up names. */
const judged = new Map<string, boolean>()

function isUsual (name: string): boolean {
  const known = judged.get(name)
  if (known !== undefined) return known
  const verdict = TOKEN.test(name) && !notTaken.has(name.toLowerCase())
  if (judged.size < MOST_NAMES && name.length <= LONGEST_NAME) judged.set(name, verdict)
  return verdict
}

const LENGTH = 'content-length'

/** Headers without the one that says a body's length, and that length; -1 if there is none, or if it says no such thing. */
export function takeLength (headers: readonly string[]): { readonly headers: readonly string[], readonly length: number } {
  for (let i = 0; i + 1 < headers.length; i += 2) {
    if (headers[i]!.length !== LENGTH.length || headers[i]!.toLowerCase() !== LENGTH) continue
    if (!/^\d{1,15}$/.test(headers[i + 1]!)) break
    return { headers: headers.toSpliced(i, 2), length: Number(headers[i + 1]) }
  }
  return { headers, length: -1 }
}

/**
 * Head of a POST, with the blank line behind it; null for anything unusual in it.
 * @param host with its port
 * @param headers flat list of names and values
 * @param length of the body; -1 for one that goes out in chunks
 */
export function postHead (host: string, path: string, headers: readonly string[], length: number): string | null {
  if (!PATH.test(path)) return null
  let head = `POST ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\n`
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const value = headers[i + 1]!
    if (!isUsual(headers[i]!) || BAD_VALUE.test(value)) return null
    head += `${headers[i]!}: ${value}\r\n`
  }
  return `${head}${length === -1 ? 'transfer-encoding: chunked' : `${LENGTH}: ${length}`}\r\n\r\n`
}
