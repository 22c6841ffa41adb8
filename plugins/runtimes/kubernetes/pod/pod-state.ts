import type { EngineAddress, EngineInspection, EngineRunState } from 'svc-gateway/plugin'
import { kubernetesError } from '../errors.js'
import type { ClusterEvent, ContainerStatus, Pod, PodCondition } from '../api/objects.js'
import { CONTAINER, LAUNCH_ANNOTATION, MANAGED_BY, MANAGED_LABEL, type KeptLaunch } from './pod-names.js'

/** What a pod keeps of its launch; null for a pod that is not an engine of a gateway, whatever its labels say. Pure. */
export function launchOf ({ metadata: { name, labels = {}, annotations = {} } }: Pod): KeptLaunch | null {
  if (labels[MANAGED_LABEL] !== MANAGED_BY) return null
  try {
    const kept = JSON.parse(annotations[LAUNCH_ANNOTATION] ?? '') as KeptLaunch
    return kept.id === name && typeof kept.labels === 'object' ? kept : null
  } catch {
    return null
  }
}

export function engineStatus (pod: Pod): ContainerStatus | null {
  return pod.status?.containerStatuses?.find(({ name }) => name === CONTAINER) ?? null
}

/** The pod ends only when its container has. Pure. */
export function runState (pod: Pod): EngineRunState {
  const state = engineStatus(pod)?.state
  if (state?.terminated !== undefined) return 'exited'
  if (state?.running !== undefined) return 'running'
  return isOver(pod) ? 'exited' : 'created'
}

/** Whether its end was begun, though its container may run for a moment yet. Launches set no deadline. Pure. */
export function isEnding ({ metadata: { deletionTimestamp }, spec: { activeDeadlineSeconds } }: Pod): boolean {
  return deletionTimestamp !== undefined || activeDeadlineSeconds !== undefined
}

/** @param address where it is reached, should it run */
export function inspection (pod: Pod, kept: KeptLaunch, address: EngineAddress | null): EngineInspection {
  const status = engineStatus(pod)
  const state = runState(pod)
  const ended = state === 'exited' ? status?.state?.terminated : undefined
  const startedAt = Date.parse(status?.state?.running?.startedAt ?? ended?.startedAt ?? '')
  return {
    id: kept.id,
    name: kept.name,
    // for kubectl
    knownAs: kept.id,
    labels: kept.labels,
    state,
    exitCode: ended?.exitCode ?? null,
    oomKilled: ended?.reason === 'OOMKilled',
    address: state === 'running' ? address : null,
    label: pod.spec.containers.find(({ name }) => name === CONTAINER)?.image ?? '',
    startedAt: Number.isNaN(startedAt) ? null : startedAt
  }
}

export type StartVerdict =
  | { readonly kind: 'runs' }
  | { readonly kind: 'waits', readonly forCapacity: boolean, readonly line: string }
  | { readonly kind: 'fails', readonly error: Error }

/** How often a mount, or the pod itself, may fail on its node before it counts: the kubelet tries again at growing intervals. */
const NODE_TRIES = 4

/**
 * How far the start of a pod is. One that ended after it ran has started: its exit says the rest. Pure.
 * @param events of the pod, the last one last
 */
export function startVerdict (pod: Pod, events: readonly ClusterEvent[] = []): StartVerdict {
  const { status = {} } = pod
  const engine = engineStatus(pod)?.state
  if (engine?.running !== undefined) return { kind: 'runs' }
  if (engine?.terminated !== undefined) return judgeEnd(engine.terminated)
  for (const { state, name } of status.initContainerStatuses ?? []) {
    if (state?.terminated !== undefined && state.terminated.exitCode !== 0) {
      const said = firstLine(state.terminated.message ?? '')
      const what = `a download failed (${name}, code ${state.terminated.exitCode})`
      return downloadFailed(`${what}${said === '' ? '' : `: ${said}`}`, state.terminated.message ?? '')
    }
    if (state?.waiting !== undefined) {
      const judged = judgeWaiting(state.waiting, events)
      if (judged !== null) return judged
    }
    if (state?.running !== undefined) return { kind: 'waits', forCapacity: false, line: 'fetching the model into the pod' }
  }
  if (isOver(pod)) return fails('kubernetes.evicted', `the pod ended before the engine ran: ${sentence(status.reason, status.message)}; \`kubectl describe node\` shows what its node was short of; raise \`resources\` of the slot, or load it again`)
  const judged = engine?.waiting === undefined ? null : judgeWaiting(engine.waiting, events)
  if (judged !== null) return judged
  const scheduled = status.conditions?.find(({ type }) => type === 'PodScheduled')
  if (scheduled?.status === 'False') return judgeUnscheduled(scheduled, pod)
  const mount = events.findLast(({ reason }) => reason === 'FailedMount' || reason === 'FailedAttachVolume')
  if (mount !== undefined) {
    const said = firstLine(mount.message ?? '')
    if ((mount.count ?? 1) >= NODE_TRIES) return fails('kubernetes.volume', `${said}; check model_storage, model_path and model_claim`)
    return { kind: 'waits', forCapacity: false, line: `waiting for a volume: ${said}` }
  }
  const sandbox = judgeSandbox(events.filter(({ reason }) => reason === 'FailedCreatePodSandBox'))
  if (sandbox !== null) return sandbox
  const last = events.at(-1)
  const line = last?.reason === 'Pulling' ? firstLine(last.message ?? 'pulling the image') : 'the pod is scheduled and being created'
  return { kind: 'waits', forCapacity: false, line }
}

/** The network, or the server of the files, may be back by the next try; another file than what is wanted stays another. */
function downloadFailed (what: string, said: string): StartVerdict {
  const isWrong = /sha256sum|checksum|FAILED$|HTTP\S* 4(?:0[0134]|10)/im.test(said)
  const next = isWrong ? 'check the url and sha256 in the downloads of the slot' : 'it is retried; check that the nodes reach the server in the downloads of the slot'
  return { kind: 'fails', error: kubernetesError('kubernetes.volume', `${what}; ${next}`, { heals: !isWrong }) }
}

function judgeEnd ({ reason = '', message = '', exitCode }: NonNullable<NonNullable<ContainerStatus['state']>['terminated']>): StartVerdict {
  const neverRan = ['StartError', 'ContainerCannotRun', 'ContainerStatusUnknown'].includes(reason)
  if (!neverRan) return { kind: 'runs' }
  return fails('kubernetes.not_runnable', `the container could not be started (${reason}, code ${exitCode}): ${firstLine(message)}; check the image and its command`)
}

/** Null for what passes by itself. */
function judgeWaiting (
  { reason = '', message = '' }: { readonly reason?: string, readonly message?: string }, events: readonly ClusterEvent[]
): StartVerdict | null {
  const said = sentence(reason, message)
  switch (reason) {
    case 'ErrImageNeverPull':
    case 'InvalidImageName':
      return fails('kubernetes.image_absent', `${said}; check container_image of the slot`)
    case 'ErrImagePull':
    case 'ImagePullBackOff':
    case 'RegistryUnavailable':
    case 'SignatureValidationFailed': {
      // the node pulls without a login that it does not find
      const login = events.findLast(({ reason }) => reason === 'FailedToRetrieveImagePullSecret')
      if (login !== undefined) return fails('kubernetes.object_missing', `${said}: ${firstLine(login.message ?? '')}; make the Secret in the namespace of the pods, or take it out of registry_logins`)
      if (/unauthorized|denied|forbidden|no basic auth/i.test(message)) {
        const next = 'check container_image of the slot, and renew the login in the Secret that registry_logins names, if the registry requires one'
        return { kind: 'fails', error: kubernetesError('kubernetes.image_absent', `${said}; ${next}`, { heals: true }) }
      }
      if (/not found|manifest unknown|does not exist/i.test(message)) {
        return fails('kubernetes.image_absent', `${said}; check container_image of the slot, and registry_logins for a registry that requires a login`)
      }
      // the back-off alone names no cause; the try before it did
      return reason === 'ImagePullBackOff' && !/failed|error/i.test(message) ? null : fails('kubernetes.image_pull', `${said}; check that the nodes reach the registry of the image`)
    }
    case 'CreateContainerConfigError':
      if (/subPath/i.test(message)) return fails('kubernetes.volume', `${said}; check that model_claim has the folder of the model below model_root`)
      return fails('kubernetes.object_missing', `${said}; create it in the namespace of the pods: svc does not reference one, so something in the cluster adds it`)
    case 'CreateContainerError':
    case 'RunContainerError':
      return fails('kubernetes.not_runnable', `${said}; check container_image of the slot, its command and its devices`)
    default:
      return null
  }
}

/** Its network, and the runtime of its runtime class; null where nothing failed. Each failure may have words of its own. */
function judgeSandbox (failures: readonly ClusterEvent[]): StartVerdict | null {
  if (failures.length === 0) return null
  const said = firstLine(failures.at(-1)!.message ?? '')
  const tries = failures.reduce((sum, { count = 1 }) => sum + count, 0)
  const isNamed = /no runtime for|runtime handler/.test(said)
  if (!isNamed && tries < NODE_TRIES) return { kind: 'waits', forCapacity: false, line: `waiting for the node: ${said}` }
  const next = isNamed ? 'install what the runtime class names on the nodes, name those that have it in node_selector, or change runtime_class' : 'check the network of the pods on that node'
  return { kind: 'fails', error: kubernetesError('kubernetes.not_runnable', `the node cannot make the pod: ${said}; ${next}`, { heals: true }) }
}

function judgeUnscheduled ({ reason, message = '' }: PodCondition, { spec: { volumes = [] } }: Pod): StartVerdict {
  const said = firstLine(message)
  if (/persistentvolumeclaim "[^"]*" not found/.test(said)) {
    return fails('kubernetes.claim_missing', `${said}; create the claim, or set model_claim to an existing one`)
  }
  if (reason !== 'Unschedulable') {
    // it says nothing while a volume is made for a claim that waits for its first pod
    const claims = volumes.flatMap(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName ?? [])
    return { kind: 'waits', forCapacity: true, line: `waiting for the scheduler${claims.length === 0 ? '' : `, and a volume for claim ${claims.join(', ')}`}` }
  }
  return { kind: 'waits', forCapacity: true, line: `waiting for capacity: ${said}` }
}

function isOver ({ status }: Pod): boolean {
  return status?.phase === 'Failed' || status?.phase === 'Succeeded'
}

function fails (code: Parameters<typeof kubernetesError>[0], message: string): StartVerdict {
  return { kind: 'fails', error: kubernetesError(code, message) }
}

function sentence (reason = '', message = ''): string {
  const said = firstLine(message)
  return [reason, said].filter(part => part !== '').join(': ') || 'no reason was given'
}

function firstLine (text: string): string {
  return text.trim().split('\n')[0]!.slice(0, 500)
}
