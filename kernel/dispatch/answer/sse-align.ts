const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d
/** A line longer than this is passed on in pieces: nothing is held without bound. */
const LONGEST_HELD_BYTES = 1024 * 1024

/**
 * Cuts a byte stream behind whole lines. The bytes and their order stay; only a line that has not arrived in
 * full waits for the rest. So an engine that dies in the middle of a line leaves the client with whole lines,
 * and the gateway's error event is not swallowed by half of one.
 */
export class LineAligner {
  #held: Buffer | null = null

  /** The bytes up to the end of the last whole line, or null. */
  push (chunk: Buffer): Buffer | null {
    const bytes = this.#held === null ? chunk : Buffer.concat([this.#held, chunk])
    const end = linesEnd(bytes)
    const tooLong = bytes.length - end > LONGEST_HELD_BYTES
    this.#held = end === bytes.length || tooLong ? null : bytes.subarray(end)
    if (end === bytes.length || tooLong) return bytes
    return end === 0 ? null : bytes.subarray(0, end)
  }

  /** What is left at an orderly end; null when nothing is. */
  flush (): Buffer | null {
    const held = this.#held
    this.#held = null
    return held
  }
}

function linesEnd (bytes: Buffer): number {
  if (bytes[bytes.length - 1] === LINE_FEED) return bytes.length
  return Math.max(bytes.lastIndexOf(LINE_FEED), bytes.lastIndexOf(CARRIAGE_RETURN)) + 1
}

/** What is missing to a blank line, so that the next event starts afresh. `tail`: the last bytes that were written. */
export function gapAfter (tail: Buffer): '' | '\n' | '\n\n' {
  const end = tail.toString('latin1', Math.max(0, tail.length - 4))
  if (end === '' || /(?:\n\n|\r\n\r\n|\r\r)$/.test(end)) return ''
  return /[\r\n]$/.test(end) ? '\n' : '\n\n'
}
