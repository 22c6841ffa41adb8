/** How an answer's body ends. */
export type Framing = 'none' | 'length' | 'chunks' | 'close'

export interface WireHead {
  readonly status: number
  /** Flat list of names and values. */
  readonly headers: readonly string[]
  readonly framing: Framing
  /** Of the body, where `framing` is `length`. */
  readonly length: number
  /** Milliseconds that the connection may be idle behind the answer; 0 if not to be used again, -1 if nothing is said. */
  readonly keepMs: number
}

const GRAMMAR = /^HTTP\/1\.[01] [1-9]\d\d(?: [\t\x20-\x7e\x80-\xff]*)?(?:\r\n[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*)*$/
/** Of `Connection`, options between commas. */
const ENDS = /(?:^|[,\t ])(?:close|upgrade)(?:[,\t ]|$)/i
const KEEPS = /(?:^|[,\t ])keep-alive(?:[,\t ]|$)/i
const SPACE = 0x20
const TAB = 0x09
/** `HTTP/1.1 ` */
const STATUS_AT = 9

/**
 * The head of an answer to a POST; a text says what is wrong with it.
 * @param text without the blank line
 */
export function readHead (text: string): WireHead | string {
  if (!GRAMMAR.test(text)) return 'the headers of the answer are malformed'
  const status = Number(text.slice(STATUS_AT, STATUS_AT + 3))
  const headers: string[] = []
  let length = -1
  let chunked: boolean | null = null
  let isKept = text.charCodeAt(7) === 0x31
  let isClosing = false
  let hintMs = -1
  let at = text.indexOf('\r\n')
  while (at !== -1) {
    const start = at + 2
    at = text.indexOf('\r\n', start)
    const colon = text.indexOf(':', start)
    const name = text.slice(start, colon)
    const value = trimmed(text, colon + 1, at === -1 ? text.length : at)
    headers.push(name, value)
    // by length first: only four names are of interest
    switch (name.length) {
      case 10:
        if (isNamed(name, 'connection')) {
          isClosing ||= ENDS.test(value)
          isKept ||= KEEPS.test(value)
        }
        if (isNamed(name, 'keep-alive')) hintMs = keepAliveMs(value)
        break
      case 14:
        if (!isNamed(name, 'content-length')) break
        if (length !== -1 || !/^\d{1,15}$/.test(value)) return 'the answer has a duplicate or invalid content length'
        length = Number(value)
        break
      case 17:
        if (!isNamed(name, 'transfer-encoding')) break
        if (chunked !== null) return 'the answer has two transfer codings'
        chunked = /^(?:.*,)?[ \t]*chunked$/i.test(value)
        break
      default:
    }
  }
  if (chunked !== null && length !== -1) return 'the answer has both a content length and a transfer coding'
  const framing = framingOf(status, chunked, length)
  const keepMs = framing === 'close' || isClosing || !isKept ? 0 : hintMs
  return { status, headers, framing, length: Math.max(0, length), keepMs }
}

function framingOf (status: number, chunked: boolean | null, length: number): Framing {
  if (status < 200 || status === 204 || status === 304 || length === 0) return 'none'
  if (chunked === true) return 'chunks'
  return length === -1 ? 'close' : 'length'
}

function trimmed (text: string, from: number, to: number): string {
  let [start, end] = [from, to]
  while (start < end && isBlank(text.charCodeAt(start))) start++
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--
  return text.slice(start, end)
}

function isBlank (code: number): boolean {
  return code === SPACE || code === TAB
}

function isNamed (name: string, lower: string): boolean {
  return name === lower || name.toLowerCase() === lower
}

/** A second less than said: the other side's time began earlier. */
function keepAliveMs (value: string): number {
  const found = /timeout=(\d{1,6})/i.exec(value)
  return found === null ? -1 : Math.max(0, Number(found[1]) * 1000 - 1000)
}
