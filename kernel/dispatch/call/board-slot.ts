import type { SlotLease } from '../../contract/index.js'

export interface Boarding {
  /** Rejects when there will be no lease. The signal aborts when the request is given up while it waits. */
  readonly acquire: (signal: AbortSignal) => Promise<SlotLease>
  /** Takes the lease over and returns the function that gives the call up. If it throws, the lease is released here. */
  readonly send: (lease: SlotLease) => (reason: Error) => void
  /** There is no lease, or `send` threw. */
  readonly failed: (error: unknown) => void
  /** Given up while it waited. */
  readonly left?: () => void
}

/**
 * The way to a slot that has no free worker at once: waits for a lease and sends the request on it. Exactly one of `send`,
 * `failed` and `left` has the last word, and a lease that comes too late goes back. Returns the function that gives the
 * request up, whether it waits or runs.
 */
export function boardSlot ({ acquire, send, failed, left }: Boarding): (reason: Error) => void {
  const waiting = new AbortController()
  let leave = (reason: Error): void => {
    leave = alreadyLeft
    waiting.abort(reason)
    left?.()
  }
  acquire(waiting.signal).then(lease => {
    // given up while the promise of the lease was on its way
    if (waiting.signal.aborted) return lease.release()
    try {
      leave = send(lease)
    } catch (error) {
      lease.release()
      throw error
    }
  }).catch((error: unknown) => {
    if (waiting.signal.aborted) return
    leave = alreadyLeft
    failed(error)
  })
  return reason => leave(reason)
}

function alreadyLeft (): void {}
