import type { Background } from '../core.js'

/*
 * Deleted bytes are overwritten in the database's file, but its write-ahead log has what was there before until it is folded in.
 * SQLite does that when the log is long, and then leaves its bytes in place. Every write counts, since a text also goes with an
 * update, a trigger or a slice behind an answer.
 */

/** Without a write for this long, the log is folded in. */
const IDLE_MS = 500
/** Where writes never pause: after so many looks. */
const MOST_LOOKS = 20
/** While another program reads. */
const LATER_MS = 1000

export const startLogFolding: Background = ({ store, closing }) => {
  let timer: NodeJS.Timeout | null = null
  let [writes, looks] = [store.writes, 0]
  const lookIn = (ms: number): void => {
    timer = closing.aborted ? null : setTimeout(look, ms).unref()
  }
  const look = (): void => {
    const isWriting = writes !== store.writes
    writes = store.writes
    if (isWriting && ++looks < MOST_LOOKS) return lookIn(IDLE_MS)
    if (!store.foldLog()) return lookIn(LATER_MS)
    ;[timer, looks] = [null, 0]
  }
  store.onWrite(() => {
    if (timer !== null) return
    writes = store.writes
    lookIn(IDLE_MS)
  })
  // what a killed engine has left in it
  lookIn(IDLE_MS)
  closing.addEventListener('abort', () => clearTimeout(timer ?? undefined), { once: true })
}
