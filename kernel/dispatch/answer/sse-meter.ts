import type { Clock } from '../../contract/index.js'
import type { TokenCount } from '../requests/active-requests.js'
import type { Throughput } from '../../slots/life/engine/throughput.js'

/** Members whose text counts as generated: chat, reasoning, legacy completions, tool calls, the Messages API. */
const TEXT_KEYS = ['content', 'text', 'arguments', 'thinking', 'partial_json'].map(key => Buffer.from(key))
const EMPTY = Buffer.alloc(0)
const QUOTE = 0x22
const SPACE = 0x20
const COLON = 0x3a
const USAGE = Buffer.from('"completion_tokens"')
const USAGE_TAIL_BYTES = 4096
const MOST_DIGITS = 9

/**
 * Counts what passes, changes nothing. One content-bearing delta counts as one
 * token; the first one gives the time to first token.
 */
export class SseMeter {
  readonly #throughput: Throughput
  readonly #counter: TokenCount
  readonly #clock: Clock
  readonly #startedAt: number
  #first = true

  /**
   * @param throughput of the slot or upstream
   * @param startedAt monotonic milliseconds of the hand-off to the engine
   */
  constructor (throughput: Throughput, counter: TokenCount, clock: Clock, startedAt: number) {
    this.#throughput = throughput
    this.#counter = counter
    this.#clock = clock
    this.#startedAt = startedAt
  }

  /** @param events whole events, as `SseAligner` gives them */
  push (events: Buffer): void {
    const count = contentDeltas(events)
    if (count === 0) return
    this.#counter.tokens += count
    if (this.#first) {
      this.#first = false
      this.#throughput.firstToken(this.#clock.monotonic() - this.#startedAt)
    }
    this.#throughput.addTokens(count)
  }
}

/**
 * Members whose name ends in one of the keys and whose value is a text that is not empty. Each byte is looked at once: a
 * search for every key costs more.
 */
export function contentDeltas (events: Buffer): number {
  let count = 0
  // a value that is a text has three bytes at least behind the quote of its name
  for (let at = 0, last = events.length - 3; at < last; at++) {
    if (events[at] !== QUOTE || events[at + 1] !== COLON) continue
    const value = events[at + 2] === SPACE ? at + 3 : at + 2
    if (events[value] !== QUOTE || value + 1 >= events.length || events[value + 1] === QUOTE) continue
    if (endsInKey(events, at)) count++
  }
  return count
}

function endsInKey (bytes: Buffer, end: number): boolean {
  for (const key of TEXT_KEYS) {
    let i = key.length
    while (i > 0 && bytes[end - key.length + i - 1] === key[i - 1]) i--
    if (i === 0) return true
  }
  return false
}

/** Credits the tokens that the `usage` block of a whole answer names. Keeps the last 4 KiB and no more. */
export class UsageMeter {
  readonly #throughput: Throughput
  readonly #counter: TokenCount
  #tail: Buffer = EMPTY

  constructor (throughput: Throughput, counter: TokenCount) {
    this.#throughput = throughput
    this.#counter = counter
  }

  push (chunk: Buffer): void {
    if (this.#tail.length === 0 && chunk.length <= USAGE_TAIL_BYTES) {
      this.#tail = chunk
      return
    }
    this.#tail = chunk.length >= USAGE_TAIL_BYTES
      ? chunk.subarray(-USAGE_TAIL_BYTES)
      : Buffer.concat([this.#tail, chunk]).subarray(-USAGE_TAIL_BYTES)
  }

  end (): void {
    const at = this.#tail.lastIndexOf(USAGE)
    if (at === -1) return
    const count = numberBehind(this.#tail, at + USAGE.length)
    if (count === null) return
    this.#counter.tokens += count
    this.#throughput.addTokens(count)
  }
}

/** The first nine digits of the number behind a colon at `at`; null when there is none. Makes no text: every answer is asked. */
function numberBehind (bytes: Buffer, at: number): number | null {
  let pos = skipSpace(bytes, at)
  if (bytes[pos] !== COLON) return null
  pos = skipSpace(bytes, pos + 1)
  const start = pos
  let number = 0
  while (pos < start + MOST_DIGITS) {
    const digit = digitAt(bytes, pos)
    if (digit === -1) break
    number = number * 10 + digit
    pos++
  }
  return pos === start ? null : number
}

function skipSpace (bytes: Buffer, at: number): number {
  let pos = at
  while (bytes[pos] === SPACE || bytes[pos] === 0x0a || bytes[pos] === 0x0d || bytes[pos] === 0x09) pos++
  return pos
}

function digitAt (bytes: Buffer, at: number): number {
  const c = bytes[at]
  return c !== undefined && c >= 0x30 && c <= 0x39 ? c - 0x30 : -1
}
