import type { Clock } from '../../contract/index.js'
import type { TokenCount } from '../requests/active-requests.js'
import type { Throughput } from '../../slots/life/throughput.js'

/** Members whose text counts as generated: chat, reasoning, legacy completions, tool calls, the Messages API. */
const TEXT_KEYS = ['content":', 'text":', 'arguments":', 'thinking":', 'partial_json":'].map(key => Buffer.from(key))
const EMPTY = Buffer.alloc(0)
const QUOTE = 0x22
const SPACE = 0x20
const USAGE = Buffer.from('"completion_tokens"')
const USAGE_TAIL_BYTES = 4096

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

export function contentDeltas (events: Buffer): number {
  let count = 0
  for (const key of TEXT_KEYS) {
    for (let at = events.indexOf(key); at !== -1; at = events.indexOf(key, at)) {
      at += key.length
      if (events[at] === SPACE) at++
      if (events[at] === QUOTE && events[at + 1] !== undefined && events[at + 1] !== QUOTE) count++
    }
  }
  return count
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
    const match = /^\s*:\s*(\d{1,9})/.exec(this.#tail.toString('latin1', at + USAGE.length, at + USAGE.length + 16))
    if (match === null) return
    this.#counter.tokens += Number(match[1])
    this.#throughput.addTokens(Number(match[1]))
  }
}
