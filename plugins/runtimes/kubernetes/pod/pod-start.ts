import { abortable, isSvcError, messageOf, pause, svcError, type Clock } from 'svc-gateway/plugin'
import type { ClusterEvent, Pod } from '../api/objects.js'
import { kubernetesError } from '../errors.js'
import type { CapacityPlace } from './capacity-line.js'
import type { InstancePods } from './instance-pods.js'
import { startVerdict, type StartVerdict } from './pod-state.js'

export interface StartWait {
  readonly pods: Pick<InstancePods, 'next'>
  readonly clock: Clock
  readonly id: string
  /** What is waited for, each time it is something else. */
  readonly told: (line: string) => void
  readonly look: () => Promise<Pod | null>
  readonly events: () => Promise<readonly ClusterEvent[]>
  /** It has a node; called once. */
  readonly placed: () => void
  /** When it began to wait for a node, on the monotonic clock, and for how long it may. */
  readonly since: number
  readonly capacityMs: number
}

/** A volume that cannot be mounted is told by events only, which change nothing of the pod. */
const LOOK_AGAIN_MS = 2_000
/** Room that is found changes the pod: it is looked at without that for a watch that is down. */
const LOOK_FOR_ROOM_MS = 10_000

/** What its node tells in events comes behind what it tells of the pod. */
const EVENT_LATE_MS = 1_000

const SHORT = 'unload a slot that holds what is asked for (`svc slot unload`), or ask for less in `resources`'
const NO_SUCH_NODE = 'no node is one that the slot may use: check node_selector and tolerations against `kubectl get nodes --show-labels` and the taints of the nodes'

type Waits = Extract<StartVerdict, { readonly kind: 'waits' }>

interface TurnWait {
  readonly place: Pick<CapacityPlace, 'turn'>
  readonly clock: Clock
  readonly capacityMs: number
  /** What it was told that it waits for. */
  readonly said: () => string
}

/** Resolves when no other pod waits for the same before this one. Throws `kubernetes.no_capacity`, or the signal's reason. */
export async function untilFirst ({ place, clock, capacityMs, said }: TurnWait, signal: AbortSignal): Promise<void> {
  const enough = new AbortController()
  const late = pause(clock, capacityMs, AbortSignal.any([signal, enough.signal]))
    .then(() => { throw notPlaced(capacityMs, said()) })
  late.catch(() => {})
  try {
    await Promise.race([abortable(place.turn, signal), late])
  } finally {
    enough.abort()
  }
}

/** Waits until the engine of a pod runs, or has run. Throws why it does not, or with the signal's reason. */
export async function untilRunning (wait: StartWait, signal: AbortSignal): Promise<void> {
  const { pods, clock, id, told } = wait
  let said = ''
  let placed = false
  for (;;) {
    signal.throwIfAborted()
    const next = pods.next(id)
    try {
      const verdict = await judged(wait, placed, signal)
      if (verdict === null) return
      if (!placed && !verdict.forCapacity) {
        placed = true
        wait.placed()
      }
      if (verdict.line !== said) told(verdict.line)
      said = verdict.line
      const leftMs = wait.since + wait.capacityMs - clock.monotonic()
      if (!placed && leftMs <= 0) throw notPlaced(wait.capacityMs, said)
      const enough = new AbortController()
      const both = AbortSignal.any([signal, enough.signal])
      const laterMs = placed ? LOOK_AGAIN_MS : Math.min(LOOK_FOR_ROOM_MS, leftMs)
      await Promise.race([next.shown(both).catch(() => {}), pause(clock, laterMs, both).catch(() => {})])
      enough.abort()
    } finally {
      next.drop()
    }
  }
}

/** It got no node in time. Pure. */
export function notPlaced (capacityMs: number, said: string): Error {
  const limit = `within ${capacityMs / 1000} s (capacity_timeout_s)`
  if (/unbound immediate PersistentVolumeClaims|, and a volume for claim /.test(said)) {
    return kubernetesError('kubernetes.claim_pending', `a claim of the pod was bound to no volume ${limit}: ${said}; \`kubectl describe pvc\` says what it waits for`)
  }
  const why = said === '' ? 'other pods are ahead in the queue' : said
  const isShort = said === '' || /Insufficient|Too many pods/.test(said) || !/didn't match Pod's node affinity|untolerated taint/.test(said)
  return kubernetesError('kubernetes.no_capacity', `no node had room ${limit}: ${why}; ${isShort ? SHORT : NO_SUCH_NODE}`)
}

/** What it waits for; null once it runs. A server that is away for a while is waited for, too. */
async function judged ({ look, events, clock }: StartWait, placed: boolean, signal: AbortSignal): Promise<Waits | null> {
  try {
    const pod = await look()
    if (pod === null) throw svcError('runtime.not_found', 'the pod was deleted while it started; load the slot again', { heals: true })
    const first = startVerdict(pod)
    const hasLogin = (pod.spec.imagePullSecrets ?? []).length > 0
    const isLoginAsked = hasLogin && first.kind === 'fails' && isSvcError(first.error) && first.error.code.startsWith('kubernetes.image_')
    if (isLoginAsked) await pause(clock, EVENT_LATE_MS, signal)
    const verdict = isLoginAsked || (first.kind === 'waits' && !first.forCapacity) ? startVerdict(pod, await events()) : first
    if (verdict.kind === 'fails') throw verdict.error
    return verdict.kind === 'runs' ? null : verdict
  } catch (error) {
    if (!isSvcError(error) || error.code !== 'kubernetes.unavailable') throw error
    return { kind: 'waits', forCapacity: !placed, line: messageOf(error) }
  }
}
