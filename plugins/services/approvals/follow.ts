import type { ApprovalState, EventBus } from 'svc-gateway/plugin'
import { approvalEventKinds, type Approval, type ApprovalEvent } from './ref.js'

const over: ReadonlySet<ApprovalState> = new Set(['executed', 'failed', 'denied', 'expired'])

export interface FollowOptions {
  readonly events: EventBus
  /** Oldest first. */
  readonly pending: () => readonly Approval[]
  /** Null for one that is not kept any more. */
  readonly entry: (id: string) => Approval | null
}

/** What is pending, then what happens. A reader that is too slow loses events, and gets what is pending once more. */
export async function* followApprovals (
  { events, pending, entry }: FollowOptions, signal: AbortSignal
): AsyncGenerator<ApprovalEvent> {
  // subscribed before the first look, so that nothing falls between the two
  const happened = events.subscribe({ type: 'approval.*' }, signal)
  for (const waiting of pending()) yield { kind: 'snapshot', entry: waiting }
  for await (const { type, data } of happened) {
    if (type === 'events.gap') {
      for (const waiting of pending()) yield { kind: 'snapshot', entry: waiting }
      continue
    }
    const kind = approvalEventKinds.find(each => type === `approval.${each}`)
    const found = kind === undefined ? null : entry(String(data.id))
    if (found !== null) yield { kind: kind!, entry: found }
  }
}

/** The entry once it is over. */
export async function waitForEnd (events: EventBus, id: string, read: () => Approval, signal: AbortSignal): Promise<Approval> {
  const happened = events.subscribe({ type: 'approval.*' }, signal)
  const now = read()
  if (over.has(now.state)) return now
  for await (const { type, data } of happened) {
    if (type !== 'events.gap' && data.id !== id) continue
    const entry = read()
    if (over.has(entry.state)) return entry
  }
  signal.throwIfAborted()
  return read()
}
