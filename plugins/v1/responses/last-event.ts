import type { Clock } from 'svc-gateway/plugin'
import { EventData } from '../over-chat/ref.js'

/** How long an engine may take to close an answer that has ended. */
const CLOSE_MS = 5_000

/**
 * Reads the events of an answer up to the one that ends it, whether or not the engine closes it then: what comes behind is read
 * for a short while and left. Rejects with what breaks the answer off before, and with what `take` throws.
 * @param take gets the data of each event; what it makes of the last one, and null for the others
 * @returns null where the answer ended without one
 */
export async function lastEventOf<T> (
  body: AsyncIterable<Buffer>, clock: Clock, take: (data: string) => T | null | Promise<T | null>
): Promise<T | null> {
  const cutter = new EventData()
  const chunks = body[Symbol.asyncIterator]()
  let last: T | null = null
  try {
    for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) {
      for (const data of cutter.push(next.value)) {
        last = await take(data)
        if (last !== null) return last
      }
    }
    return null
  } finally {
    void (last === null ? chunks.return?.() : closed(chunks, clock))
  }
}

/** Never rejects: a connection that breaks behind the end of an answer takes nothing from it. */
async function closed (chunks: AsyncIterator<Buffer>, clock: Clock): Promise<void> {
  const timer = clock.setTimer(CLOSE_MS, () => { void chunks.return?.() })
  try {
    while ((await chunks.next()).done !== true);
  } catch {
    // it has been said already
  } finally {
    timer.cancel()
  }
}
