import type { RouteCall, SlotService } from 'svc-gateway/plugin'

/**
 * Tells how far the start of a slot is, in the words of its engine where that has some, until `work` is over.
 * Settles as `work` does.
 */
export async function withProgress<T> (
  slots: SlotService, name: string, tell: NonNullable<RouteCall['progress']>, work: Promise<T>
): Promise<T> {
  const over = new AbortController()
  // a slot that is deleted meanwhile fails the work itself
  follow(slots, name, tell, over.signal).catch(() => undefined)
  try {
    return await work
  } finally {
    over.abort()
  }
}

async function follow (
  slots: SlotService, name: string, tell: NonNullable<RouteCall['progress']>, signal: AbortSignal
): Promise<void> {
  let told = ''
  for await (const { state, message, progress } of slots.watch(name, signal)) {
    if (signal.aborted) return
    if (!['pulling', 'starting', 'warming'].includes(state)) continue
    const text = `${name}: ${message === '' ? state : message}`
    if (text === told) continue
    told = text
    // the share of a pull is another than that of the load after it: only the last one counts up
    if (progress !== null && state === 'warming') tell(text, Math.floor(progress * 100), 100)
    else tell(text)
  }
}
