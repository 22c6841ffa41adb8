import { isSvcError, messageOf, type Clock } from 'svc-gateway/plugin'
import { ClusterApi } from '../api/cluster-api.js'
import { accessDoubts, clusterAccess } from '../api/kubeconfig.js'
import { listPages } from '../api/watched-list.js'
import { isSamePlace, placeLine, type PodPlace } from '../former/pod-places.js'
import type { ClusterSettings } from '../settings.js'
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

export interface SurveyInput {
  readonly settings: ClusterSettings
  /** Devices of the slots that run there. */
  readonly devices: readonly string[]
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
const DEVICE_RESOURCES: Readonly<Record<string, string>> = { 'gpu-cuda': 'nvidia.com/gpu', 'gpu-rocm': 'amd.com/gpu' }

/** Asks the cluster whether slots can run there. Changes nothing, and rejects for nothing that it finds. */
export async function surveyCluster ({ settings, devices, places, env, clock }: SurveyInput): Promise<ClusterSurvey> {
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
    const doubts = Number.parseInt(version.minor, 10) < LEAST_MINOR ? [`Kubernetes ${version.gitVersion} is older than 1.${LEAST_MINOR}, with which nothing was tried`] : []
    if (settings.model_storage === 'claim') problems.push(...await claimProblems(api, settings.model_claim))
    const gpus = await nodeGpus(api)
    const former = places.filter(each => !isSamePlace(each, api.access))
    doubts.push(...gpuDoubts(devices, gpus), ...accessDoubts(api.access), ...former.map(placeLine))
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

async function claimProblems (api: ClusterApi, name: string): Promise<readonly string[]> {
  if (name === '') return ['model_storage is claim and model_claim names none']
  try {
    const claim = await api.find<Claim>({ path: api.path('persistentvolumeclaims', name) })
    return claim === null ? [`there is no claim '${name}' in namespace '${api.namespace}' (model_claim)`] : []
  } catch (error) {
    // that it may not be looked at is told with the rights
    return isSvcError(error) && error.code === 'kubernetes.forbidden' ? [] : [messageOf(error)]
  }
}

async function nodeGpus (api: ClusterApi): Promise<ClusterSurvey['gpus']> {
  try {
    const sums: Record<string, number> = {}
    for await (const { items } of listPages<Node>(api, '/api/v1/nodes')) {
      for (const { status } of items) {
        const own = Object.entries(status?.allocatable ?? {}).filter(([name]) => GPU.test(name))
        for (const [name, count] of own) sums[name] = (sums[name] ?? 0) + Number(count)
      }
    }
    return sums
  } catch (error) {
    if (isSvcError(error) && error.code === 'kubernetes.forbidden') return null
    throw error
  }
}

function gpuDoubts (devices: readonly string[], gpus: ClusterSurvey['gpus']): readonly string[] {
  if (gpus === null) return []
  return [...new Set(devices)].flatMap(device => {
    const resource = DEVICE_RESOURCES[device]
    return resource === undefined || (gpus[resource] ?? 0) > 0 ? [] : [`no node has ${resource}, which slots on ${device} ask for; install its device plugin`]
  })
}
