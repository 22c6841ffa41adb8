import type { Clock, ContainerRuntime, Logger } from 'svc-gateway/plugin'
import { ClusterApi } from './api/cluster-api.js'
import { accessDoubts, clusterAccess } from './api/kubeconfig.js'
import { FormerPods } from './former/former-pods.js'
import { KubernetesRuntime, type KubernetesRuntimeDeps } from './kubernetes-runtime.js'
import { ForwardReach } from './reach/forward-reach.js'
import { NodePortReach } from './reach/node-port-reach.js'
import { PodReach, type Reach } from './reach/reach.js'
import type { ClusterSettings } from './settings.js'

export interface OpenOptions extends Pick<KubernetesRuntimeDeps, 'settings' | 'budgets'> {
  readonly clock: Clock
  readonly log: Logger
  readonly env: NodeJS.ProcessEnv
  /** Where it is remembered which namespaces this home uses, and the id of the home. Absent: no others are looked at. */
  readonly home?: { readonly folder: string, readonly instance: string }
}

/** Connects to the cluster that the settings name. Throws what keeps it from that. */
export async function openKubernetes (options: OpenOptions, signal: AbortSignal): Promise<ContainerRuntime> {
  const { settings, budgets, clock, log, env, home } = options
  const now = settings()
  const access = await clusterAccess(now, env)
  for (const doubt of accessDoubts(access)) log.warn({ server: access.server }, doubt)
  const api = new ClusterApi(access, clock, env, () => clusterAccess(now, env))
  try {
    const { gitVersion } = await api.json<{ readonly gitVersion: string }>({ path: '/version', signal })
    const { kubeconfig } = now
    const former = home === undefined ? null : await FormerPods.open({ ...home, api, env, clock, log, kubeconfig })
    const info = {
      driver: 'kubernetes',
      version: gitVersion,
      endpoint: access.server,
      get reason () { return [`${access.source}, namespace '${access.namespace}'`, ...former?.lines() ?? []].join('; ') }
    }
    return new KubernetesRuntime({ api, info, clock, log, former, reach: reachOf(now, api, log), settings, budgets })
  } catch (error) {
    await api.close()
    throw error
  }
}

function reachOf ({ reach, node_host: host }: ClusterSettings, api: ClusterApi, log: Logger): Reach {
  if (reach === 'forward') return new ForwardReach(api, log)
  return reach === 'node-port' ? new NodePortReach(api, host) : new PodReach()
}
