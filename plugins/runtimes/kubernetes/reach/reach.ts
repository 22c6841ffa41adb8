import type { EngineAddress } from 'svc-gateway/plugin'
import type { ClusterApi } from '../api/cluster-api.js'
import type { Pod } from '../api/objects.js'
import type { KeptLaunch } from '../pod/pod-names.js'

/** How engines are reached from here. */
export interface Reach {
  /** Throws `slot.port_conflict` where a port of this host is needed and taken. */
  assertFree (launch: Pick<KeptLaunch, 'port' | 'ports'>): Promise<void>
  /** Before a pod may run. Throws `slot.port_conflict`, or what the cluster refuses. */
  open (pod: Pod, launch: KeptLaunch): Promise<void>
  /** Of a pod that runs, also of one that an earlier gateway left; null while there is no way to it. */
  address (pod: Pod, launch: KeptLaunch): Promise<EngineAddress | null>
  /** The engine has ended. Idempotent. */
  drop (id: string): Promise<void>
  close (): Promise<void>
}

/** By the address of the pod: for a gateway in the cluster, or one that its network is routed to. */
export class PodReach implements Reach {
  assertFree (): Promise<void> { return Promise.resolve() }
  open (): Promise<void> { return Promise.resolve() }
  drop (): Promise<void> { return Promise.resolve() }
  close (): Promise<void> { return Promise.resolve() }

  address ({ status }: Pod, { port, ports }: KeptLaunch): Promise<EngineAddress | null> {
    const host = status?.podIP
    return Promise.resolve(host === undefined || host === '' || port === null ? null : { host, port, ...(ports === undefined ? {} : { ports }) })
  }
}

export type ReachApi = Pick<ClusterApi, 'path' | 'json' | 'find' | 'connection' | 'namespace'>
