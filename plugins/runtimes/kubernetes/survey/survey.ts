import { isSvcError, messageOf, type Clock } from 'svc-gateway/plugin'
import { ClusterApi } from '../api/cluster-api.js'
import { accessDoubts, clusterAccess } from '../api/kubeconfig.js'
import { listPages } from '../api/watched-list.js'
import { isSamePlace, placeLine, type PodPlace } from '../former/pod-places.js'
import { podSettings, slotOptionsSchema, type ClusterSettings, type PodSettings } from '../settings.js'
import { neededRights, rightName } from './rights.js'

/** A cluster, as an account of it sees it. */
export interface ClusterSurvey {
  /** Where it is and how it was found, for people. */
  readonly place: string
  readonly namespace: string
  /** Of the API server; null where it was not reached. */
  readonly version: string | null
  /** Slots cannot run until it is mended. */
  readonly problems: readonly string[]
  /** What may be in the way. */
  readonly doubts: readonly string[]
  /** What nodes have to give, by resource, as `nvidia.com/gpu`; null where the account may not see nodes. */
  readonly gpus: Readonly<Record<string, number>> | null
}

export interface SurveyedSlot {
  readonly name: string
  readonly device: string | null
  /** Its `runtime_options`. */
  readonly options: unknown
}

export interface SurveyInput {
  readonly settings: ClusterSettings
  /** Those that run there. */
  readonly slots: readonly SurveyedSlot[]
  /** Where pods of this home may be, the one in use among them. */
  readonly places: readonly PodPlace[]
  readonly env: NodeJS.ProcessEnv
  readonly clock: Clock
}

interface Review { readonly status?: { readonly allowed?: boolean } }
interface Node { readonly status?: { readonly allocatable?: Readonly<Record<string, string>> } }
interface Claim { readonly status?: { readonly phase?: string, readonly accessModes?: readonly string[] } }

/** Pods with scheduling gates, and a deadline that ends one which runs, in all that it is used for. */
const LEAST_MINOR = 30
const REVIEWS = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'
const GPU = /\/gpu$/
/** Of a device plugin: what every node has is called without a domain. */
const EXTENDED = /\//
const DEVICE_RESOURCES: Readonly<Record<string, string>> = { 'gpu-cuda': 'nvidia.com/gpu', 'gpu-rocm': 'amd.com/gpu' }

/** Asks the cluster whether slots can run there. Changes nothing, and rejects for nothing that it finds. */
export async function surveyCluster ({ settings, slots, places, env, clock }: SurveyInput): Promise<ClusterSurvey> {
  const nothing = { version: null, doubts: [], gpus: null }
  let api: ClusterApi
  try {
    api = new ClusterApi(await clusterAccess(settings, env), clock, env)
  } catch (error) {
    return { ...nothing, place: 'no cluster', namespace: settings.namespace, problems: [messageOf(error)] }
  }
  const { access: { server, source }, namespace } = api
  const place = `${server} (${source})`
  try {
    const version = await api.json<{ readonly gitVersion: string, readonly minor: string }>({ path: '/version' })
    const missing = await missingRights(api, settings)
    const problems = missing.length === 0 ? [] : [`the account may not ${missing.join(', ')} in namespace '${namespace}'`]
    const doubts = Number.parseInt(version.minor, 10) < LEAST_MINOR ? [`Kubernetes ${version.gitVersion} is older than 1.${LEAST_MINOR}, the oldest tested version`] : []
    const unbound: string[] = []
    for (const [claim, use] of claimsOf(settings, slots)) {
      const found = await surveyClaim(api, claim, use)
      problems.push(...found.problems)
      unbound.push(...found.doubts)
    }
    const devices = await nodeDevices(api)
    const former = places.filter(each => !isSamePlace(each, api.access))
    doubts.push(...unbound, ...deviceDoubts(settings, slots, devices), ...accessDoubts(api.access), ...former.map(placeLine))
    const gpus = devices === null ? null : Object.fromEntries(Object.entries(devices).filter(([name]) => GPU.test(name)))
    return { place, namespace, version: version.gitVersion, problems, doubts, gpus }
  } catch (error) {
    return { ...nothing, place, namespace, problems: [messageOf(error)] }
  } finally {
    await api.close()
  }
}

async function missingRights (api: ClusterApi, settings: ClusterSettings): Promise<readonly string[]> {
  const asked = neededRights(settings).flatMap(right => right.verbs.map(verb => ({ right, verb })))
  const answers = await Promise.all(asked.map(async ({ right: { resource, subresource }, verb }) => {
    const { status } = await api.json<Review>({
      method: 'POST',
      path: REVIEWS,
      body: {
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SelfSubjectAccessReview',
        spec: { resourceAttributes: { namespace: api.namespace, verb, resource, subresource: subresource ?? '' } }
      }
    })
    return status?.allowed === true
  }))
  return asked.filter((_, i) => !answers[i]).map(({ right, verb }) => `${verb} ${rightName(right)} (${right.use})`)
}

/** What a slot's pod is made by; null for options that do not fit, which are told elsewhere. */
function optionsOf (settings: ClusterSettings, { options }: SurveyedSlot): PodSettings | null {
  const own = slotOptionsSchema.safeParse(options ?? {})
  return own.success ? podSettings(settings, own.data) : null
}

/** Claims with models, and what names them. Pure. */
function claimsOf (settings: ClusterSettings, slots: readonly SurveyedSlot[]): ReadonlyMap<string, string> {
  const claims = new Map<string, string>()
  if (settings.model_storage === 'claim') claims.set(settings.model_claim, 'model_claim')
  for (const slot of slots) {
    const own = optionsOf(settings, slot)
    if (own?.model_storage === 'claim' && !claims.has(own.model_claim)) claims.set(own.model_claim, `model_claim of slot '${slot.name}'`)
  }
  return claims
}

async function surveyClaim (api: ClusterApi, name: string, use: string): Promise<Pick<ClusterSurvey, 'problems' | 'doubts'>> {
  const problem = (text: string): Pick<ClusterSurvey, 'problems' | 'doubts'> => ({ problems: [text], doubts: [] })
  const none = { problems: [], doubts: [] }
  if (name === '') return problem(`model_storage is claim but ${use} is not set`)
  try {
    const claim = await api.find<Claim>({ path: api.path('persistentvolumeclaims', name) })
    if (claim === null) return problem(`there is no claim '${name}' in namespace '${api.namespace}' (${use}); create it, or name one of those that \`kubectl -n ${api.namespace} get pvc\` lists`)
    const phase = claim.status?.phase ?? 'Pending'
    return phase === 'Bound' ? none : { problems: [], doubts: [`claim '${name}' in namespace '${api.namespace}' is bound to no volume yet (${phase}; ${use}): \`kubectl describe pvc ${name}\` says what it waits for`] }
  } catch (error) {
    // that it may not be looked at is told with the rights
    return isSvcError(error) && error.code === 'kubernetes.forbidden' ? none : problem(messageOf(error))
  }
}

/** Of all nodes together, by resource; null where the account may not see nodes. */
async function nodeDevices (api: ClusterApi): Promise<Readonly<Record<string, number>> | null> {
  try {
    const sums: Record<string, number> = {}
    for await (const { items } of listPages<Node>(api, '/api/v1/nodes')) {
      for (const { status } of items) {
        const own = Object.entries(status?.allocatable ?? {}).filter(([name]) => EXTENDED.test(name))
        for (const [name, count] of own) sums[name] = (sums[name] ?? 0) + Number(count)
      }
    }
    return sums
  } catch (error) {
    if (isSvcError(error) && error.code === 'kubernetes.forbidden') return null
    throw error
  }
}

function deviceDoubts (
  settings: ClusterSettings, slots: readonly SurveyedSlot[], devices: Readonly<Record<string, number>> | null
): readonly string[] {
  if (devices === null) return []
  const wanted = new Map<string, string>()
  for (const slot of slots) {
    const resources = optionsOf(settings, slot)?.resources
    const usual = DEVICE_RESOURCES[slot.device ?? '']
    const named = Object.keys({ ...resources?.requests, ...resources?.limits }).filter(name => EXTENDED.test(name))
    for (const name of resources === undefined ? [usual ?? []].flat() : named) if (!wanted.has(name)) wanted.set(name, slot.name)
  }
  return [...wanted].flatMap(([resource, slot]) => (devices[resource] ?? 0) > 0 ? []
    : [`no node has ${resource}, which slot '${slot}' requests; install its device plugin`])
}
