import { pause, svcError, type Clock } from 'svc-gateway/plugin'
import type { Pod } from '../api/objects.js'
import type { InstancePods } from './instance-pods.js'

export interface EndWait {
  readonly pods: Pick<InstancePods, 'next'>
  readonly clock: Clock
  readonly id: string
  /** The pod as it is now; null once there is nothing left to wait for. */
  readonly look: () => Promise<Pod | null>
  /** How long its node may take to end it. */
  readonly graceMs: number
  /** Its node is gone, and will not end it. True gives the wait up. */
  readonly lost: () => Promise<boolean>
}

/** Longer than a kubelet takes beyond the grace of a pod; then the node is gone, and the pod with it. */
const LOST_AFTER_MS = 60_000
const LOOK_AGAIN_MS = 2_000

/** Waits until `look` has nothing left. Throws `gateway.stopping` when the signal aborts. */
export async function untilEnded ({ pods, clock, id, look, graceMs, lost }: EndWait, closing: AbortSignal): Promise<void> {
  const since = clock.monotonic()
  for (;;) {
    const next = pods.next(id)
    try {
      const pod = await look()
      if (pod === null) return
      if (clock.monotonic() - since >= graceMs + LOST_AFTER_MS && isLost(pod) && await lost()) return
      await nextLook(next.shown, clock, closing)
    } finally {
      next.drop()
    }
  }
}

/** The watch may be down: then it is looked anyway. */
async function nextLook (shown: (signal: AbortSignal) => Promise<Pod | null>, clock: Clock, closing: AbortSignal): Promise<void> {
  const enough = new AbortController()
  const later = pause(clock, LOOK_AGAIN_MS, AbortSignal.any([closing, enough.signal]))
  await Promise.race([shown(enough.signal), later]).catch(() => {})
  later.catch(() => {})
  enough.abort()
  if (closing.aborted) throw svcError('gateway.stopping', 'the gateway stops')
}

/** Its node tells nothing of it any more. */
function isLost ({ status }: Pod): boolean {
  return status?.conditions?.some(({ type, status: ready }) => type === 'Ready' && ready !== 'True') === true
}
