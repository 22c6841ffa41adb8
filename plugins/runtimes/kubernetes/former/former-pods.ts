import { LABEL_INSTANCE, messageOf, pause, within, type Clock, type Logger } from 'svc-gateway/plugin'
import { ClusterApi } from '../api/cluster-api.js'
import { clusterAccess } from '../api/kubeconfig.js'
import type { Pod } from '../api/objects.js'
import { listAll } from '../api/watched-list.js'
import { podsOf } from '../pod/instance-pods.js'
import { launchOf } from '../pod/pod-state.js'
import { isSamePlace, placeLine, placeOf, readPlaces, writePlaces, type PodPlace } from './pod-places.js'

export interface FormerPodsDeps {
  /** The plugin's own. */
  readonly folder: string
  /** Id of this home. */
  readonly instance: string
  /** What is in use now. */
  readonly api: ClusterApi
  readonly kubeconfig: string
  readonly env: NodeJS.ProcessEnv
  readonly clock: Clock
  readonly log: Logger
}

const LOOK_AGAIN_MS = 500
/** For each place: longer than pods take to end. */
const PLACE_MS = 60_000
const GRACE_S = 1

/**
 * Pods that this home has in namespaces and clusters that it does not use any more. They are removed in the background: no
 * slot waits for a cluster that is away. One that cannot be asked is remembered, and asked again by the next run.
 */
export class FormerPods {
  readonly #deps: FormerPodsDeps
  readonly #closing = new AbortController()
  #left: readonly PodPlace[] = []
  #work: Promise<void> = Promise.resolve()

  private constructor (deps: FormerPodsDeps) {
    this.#deps = deps
  }

  /** Writes down what is in use before a pod is made there, and begins to look at the others. */
  static async open (deps: FormerPodsDeps): Promise<FormerPods> {
    const { api, folder, instance, kubeconfig } = deps
    const self = new FormerPods(deps)
    const here = placeOf(api.access, kubeconfig, instance)
    self.#left = (await readPlaces(folder)).filter(place => !isSamePlace(place, here))
    await writePlaces(folder, [here, ...self.#left])
    self.#work = self.#endAll(here)
    return self
  }

  /** A line for each place that may have some. */
  lines (): readonly string[] {
    return this.#left.map(placeLine)
  }

  async close (): Promise<void> {
    this.#closing.abort(new Error('the runtime is closed'))
    await this.#work
  }

  /** Never rejects. */
  async #endAll (here: PodPlace): Promise<void> {
    const { folder, log } = this.#deps
    for (const place of this.#left) {
      try {
        await within(this.#closing.signal, PLACE_MS, bound => this.#end(place, bound))
        this.#left = this.#left.filter(other => other !== place)
        await writePlaces(folder, [here, ...this.#left])
      } catch (error) {
        if (this.#closing.signal.aborted) return
        log.warn({ server: place.server, namespace: place.namespace }, `${placeLine(place)}: ${messageOf(error)}`)
      }
    }
  }

  /** Resolves when none is there. */
  async #end (place: PodPlace, signal: AbortSignal): Promise<void> {
    const { clock, env, instance, log, api: current } = this.#deps
    const access = await clusterAccess(place, env)
    if (access.server !== place.server) throw new Error(`context '${place.context}' now points to ${access.server}`)
    const api = new ClusterApi(access, clock, env)
    const find = async (): Promise<readonly Pod[]> => {
      const { items } = await listAll<Pod>(api, api.path('pods'), podsOf(instance), signal)
      return items.filter(pod => launchOf(pod)?.labels[LABEL_INSTANCE] === instance)
    }
    try {
      const found = await find()
      if (found.length === 0) return
      // one cluster may have two addresses: what is seen by the other, too, is in use. It is asked later, so it has no fewer
      const { items } = await listAll<Pod>(current, current.path('pods'), podsOf(instance), signal)
      const used = new Set(items.map(({ metadata: { uid } }) => uid))
      const isFormer = ({ metadata: { uid } }: Pod): boolean => !used.has(uid)
      for (const { metadata: { name } } of found.filter(isFormer)) {
        log.warn({ engine: name, server: place.server, namespace: place.namespace }, 'removing a pod of an earlier run, which used another namespace or cluster')
        await api.find({ method: 'DELETE', path: api.path('pods', name), query: { gracePeriodSeconds: String(GRACE_S) }, signal })
      }
      const gone = new Set(found.filter(isFormer).map(({ metadata: { uid } }) => uid))
      while ((await find()).some(({ metadata: { uid } }) => gone.has(uid))) await pause(clock, LOOK_AGAIN_MS, signal)
    } finally {
      await api.close()
    }
  }
}
