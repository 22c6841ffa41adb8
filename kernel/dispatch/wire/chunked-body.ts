const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d
const SEMICOLON = 0x3b
/** What may stand behind a size: what the general client takes, which is more than the standard allows. */
const EXTENSIONS = /^(?:;+(?=[^;])[\w!#$%&'*+\-.^`|~]*(?:=[\w!#$%&'*+\-.^`|~]*(?:"(?:[\t\x20!\x23-\x5b\x5d-\xff]|\\[\t\x20-\x7e\x80-\xff])*")?)?)+$/
const LONGEST_EXTENSIONS = 4096
const LONGEST_TRAILERS = 16 * 1024
const MOST_DIGITS = 13

type State = 'size' | 'extension' | 'size-end' | 'data' | 'data-end' | 'data-feed' | 'trailer' | 'end' | 'broken'

/**
 * Takes the chunks of a body apart. What belongs to the body is moved together inside the bytes that came, so that it is
 * copied out once, however many chunks it came in.
 */
export class ChunkedBody {
  #state: State = 'size'
  #left = 0
  #digits = 0
  #lineBytes = 0
  #trailerBytes = 0
  #extensions = ''
  #isReturned = false
  /** Position behind the last byte that was looked at. */
  at = 0

  get ended (): boolean { return this.#state === 'end' }
  /** What came are no chunks. */
  get isBroken (): boolean { return this.#state === 'broken' }

  /**
   * Moves the body's bytes of `bytes[from..to)` to `from` and returns how many there are. Behind the body's end, and behind
   * what is malformed, nothing is looked at.
   */
  take (bytes: Uint8Array, from: number, to: number): number {
    let [pos, out] = [from, from]
    while (pos < to && this.#state !== 'end' && this.#state !== 'broken') {
      if (this.#state === 'data') {
        const size = Math.min(this.#left, to - pos)
        if (out !== pos) bytes.copyWithin(out, pos, pos + size)
        out += size
        pos += size
        this.#left -= size
        if (this.#left === 0) this.#state = 'data-end'
      } else if (!this.#step(bytes[pos++]!)) {
        this.#state = 'broken'
      }
    }
    this.at = pos
    return out - from
  }

  /** False for a byte that cannot stand here. */
  #step (byte: number): boolean {
    switch (this.#state) {
      case 'size': {
        const digit = hexDigit(byte)
        if (digit !== -1) {
          this.#left = this.#left * 16 + digit
          return ++this.#digits <= MOST_DIGITS
        }
        if (this.#digits === 0) return false
        if (byte === CARRIAGE_RETURN) this.#state = 'size-end'
        else if (byte === SEMICOLON) [this.#state, this.#extensions] = ['extension', ';']
        else return false
        return true
      }
      case 'extension':
        if (byte !== CARRIAGE_RETURN) return (this.#extensions += String.fromCharCode(byte)).length <= LONGEST_EXTENSIONS
        this.#state = 'size-end'
        return EXTENSIONS.test(this.#extensions)
      case 'size-end':
        this.#state = this.#left === 0 ? 'trailer' : 'data'
        this.#digits = 0
        return byte === LINE_FEED
      case 'data-end':
        this.#state = 'data-feed'
        return byte === CARRIAGE_RETURN
      case 'data-feed':
        this.#state = 'size'
        return byte === LINE_FEED
      case 'trailer':
        return this.#trailer(byte)
      default:
        return false
    }
  }

  /** What stands behind the last chunk is dropped, up to its blank line. */
  #trailer (byte: number): boolean {
    // both of a line's end, always: where this side and one in between disagreed on the end, the rest would be the next answer
    if (this.#isReturned !== (byte === LINE_FEED)) return false
    this.#isReturned = byte === CARRIAGE_RETURN
    if (byte === LINE_FEED) {
      if (this.#lineBytes === 0) this.#state = 'end'
      this.#lineBytes = 0
    } else if (byte !== CARRIAGE_RETURN) {
      this.#lineBytes++
    }
    return ++this.#trailerBytes <= LONGEST_TRAILERS
  }
}

function hexDigit (byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const lower = byte | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1
}
