import type { EngineAddress } from 'svc-gateway/plugin'
import type { ClusterService, Pod } from '../api/objects.js'
import { ENGINE_LABEL, MANAGED_BY, MANAGED_LABEL, type KeptLaunch } from '../pod/pod-names.js'
import type { Reach, ReachApi } from './reach.js'

/** By a port that every node has: a Service for each engine, which goes with its pod. */
export class NodePortReach implements Reach {
  readonly #api: ReachApi
  /** Empty: the node that the pod is on. */
  readonly #host: string
  readonly #found = new Map<string, ClusterService>()

  constructor (api: ReachApi, host: string) {
    this.#api = api
    this.#host = host
  }

  assertFree (): Promise<void> { return Promise.resolve() }
  close (): Promise<void> { return Promise.resolve() }

  async open (pod: Pod, launch: KeptLaunch): Promise<void> {
    const service = await this.#find(launch.id) ?? await this.#api.json<ClusterService>({
      method: 'POST', path: this.#api.path('services'), body: serviceManifest(pod, launch)
    })
    this.#found.set(launch.id, service)
  }

  async address ({ status }: Pod, { id, port, ports = {} }: KeptLaunch): Promise<EngineAddress | null> {
    const host = this.#host === '' ? status?.hostIP ?? '' : this.#host
    if (host === '' || port === null) return null
    const service = this.#found.get(id) ?? await this.#find(id)
    if (service === null) return null
    this.#found.set(id, service)
    const nodePort = (name: string): number | undefined => service.spec.ports.find(row => row.name === name)?.nodePort
    const main = nodePort('main')
    if (main === undefined) return null
    const further = Object.keys(ports).map((name, i) => [name, nodePort(`more-${i}`) ?? 0] as const)
    return { host, port: main, ...(further.length === 0 ? {} : { ports: Object.fromEntries(further) }) }
  }

  /** The cluster takes the Service away with its owner, the pod. */
  drop (id: string): Promise<void> {
    this.#found.delete(id)
    return Promise.resolve()
  }

  async #find (id: string): Promise<ClusterService | null> {
    return await this.#api.find<ClusterService>({ path: this.#api.path('services', id) })
  }
}

/** Pure. */
export function serviceManifest ({ metadata: { uid } }: Pod, { id, port, ports = {} }: KeptLaunch): object {
  const rows = [...port === null ? [] : [['main', port] as const], ...Object.values(ports).map((each, i) => [`more-${i}`, each] as const)]
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      name: id,
      labels: { [MANAGED_LABEL]: MANAGED_BY, [ENGINE_LABEL]: id },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: id, uid }]
    },
    spec: { type: 'NodePort', selector: { [ENGINE_LABEL]: id }, ports: rows.map(([name, each]) => ({ name, port: each, targetPort: each })) }
  }
}
