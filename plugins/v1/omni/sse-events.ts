import { svcError } from 'svc-gateway/plugin'

/** Longest event that is put together. */
const LONGEST_EVENT_BYTES = 8 * 1024 * 1024

/** One event of a stream: its bytes as they came, with the blank line, and what its `data` lines say. */
export interface StreamEvent {
  readonly raw: Buffer
  /** Null for comments. */
  readonly data: string | null
}

/** Cuts a byte stream into events, however it was cut on its way. */
export async function* streamEvents (body: AsyncIterable<Buffer>): AsyncGenerator<StreamEvent, void, undefined> {
  let held: Buffer = Buffer.alloc(0)
  for await (const chunk of body) {
    // the end of what was held may be the first half of a blank line
    const seen = Math.max(0, held.length - 3)
    held = held.length === 0 ? chunk : Buffer.concat([held, chunk])
    let start = 0
    for (let end = eventEnd(held, seen); end !== -1; end = eventEnd(held, start)) {
      yield eventOf(held.subarray(start, end))
      start = end
    }
    held = held.subarray(start)
    if (held.length > LONGEST_EVENT_BYTES) throw svcError('dispatch.upstream_failed', 'the engine sent an event without an end')
  }
  if (held.length > 0) yield eventOf(held)
}

/** Offset behind the next blank line, or -1. Lines may end in LF, CRLF or CR. */
function eventEnd (bytes: Buffer, from: number): number {
  for (let at = from; at < bytes.length; at++) {
    const first = lineEnd(bytes, at)
    if (first === 0) continue
    const second = lineEnd(bytes, at + first)
    if (second !== 0) return at + first + second
    at += first - 1
  }
  return -1
}

/** Bytes of the line end at an offset: 0, 1 or 2. */
function lineEnd (bytes: Buffer, at: number): number {
  if (bytes[at] === 0x0d) return bytes[at + 1] === 0x0a ? 2 : 1
  return bytes[at] === 0x0a ? 1 : 0
}

function eventOf (raw: Buffer): StreamEvent {
  const lines = raw.toString('utf8').split(/\r\n|\n|\r/).filter(line => line.startsWith('data:'))
  return { raw, data: lines.length === 0 ? null : lines.map(line => line.slice(line[5] === ' ' ? 6 : 5)).join('\n') }
}
