import { linkedAbort } from '../../async/waiting.js'
import type { Clock, ModelObject, SurfaceName, SvcError, Timer } from '../../contract/index.js'
import type { Catalog } from './catalog.js'
import { notListed, resolutionError } from './resolution-errors.js'
import { fullNameRoute, isRoute, mayBeRemote, type DeadEnd, type Resolution, type Route } from './resolve.js'
import type { UpstreamPool } from '../upstream/upstream-pool.js'

export interface ModelLookupDeps {
  readonly clock: Clock
  readonly catalog: Catalog
  readonly upstreams: UpstreamPool
  /** Names this gateway among those that a question comes through. */
  readonly token: string
}

/** How long an upstream that comes first in the order holds up what another could answer. */
const PRECEDENCE_MS = 500

/**
 * Resolution of names that the lists known so far may not decide. Upstreams whose list is missing are asked, and waited
 * for only as long as one of them could still decide the name.
 */
export class ModelLookup {
  readonly #deps: ModelLookupDeps

  constructor (deps: ModelLookupDeps) {
    this.#deps = deps
  }

  /** Where a request goes, or a dead end; null when upstreams must be asked first. */
  now (model: string, surface: SurfaceName): Resolution | null {
    const found = this.#deps.catalog.resolve(model, surface)
    if (isRoute(found) ? !isUsual(found) : !mayBeRemote(found)) return found
    return this.#deps.upstreams.isDue('empty') ? null : this.#resolve(model, surface)
  }

  /**
   * No list has the model: those that are missing are asked for before that is the last word. Returns the function that
   * gives the question up; `decided` is not called then.
   */
  ask (model: string, surface: SurfaceName, decided: (found: Resolution) => void): (reason: Error) => void {
    const waiting = new AbortController()
    void this.#later(model, surface, waiting.signal).then(found => {
      if (!waiting.signal.aborted) decided(found)
    })
    return reason => waiting.abort(reason)
  }

  /** Asks for the missing lists. Never rejects; the result is meaningless once the signal has aborted. */
  async #later (model: string, surface: SurfaceName, signal: AbortSignal): Promise<Resolution> {
    const { clock, upstreams } = this.#deps
    const { controller: enough, dispose } = linkedAbort(signal)
    let patience = null as Timer | null
    const look = (): void => {
      const found = this.#resolve(model, surface)
      if (enough.signal.aborted || !isRoute(found) || isUsual(found)) return
      if (found.kind === 'slot' || !this.#isContested(model, found.upstream)) return enough.abort()
      patience ??= clock.setTimer(PRECEDENCE_MS, () => {
        patience = null
        const decided = this.#resolve(model, surface)
        if (isRoute(decided) && !isUsual(decided)) enough.abort()
      })
    }
    look()
    await upstreams.refresh('empty', enough.signal, [], look)
    dispose()
    patience?.cancel()
    return this.#resolve(model, surface)
  }

  /** The rows of `GET /v1/models`. */
  async rows (signal: AbortSignal, passed: readonly string[], waitsForFailed: boolean): Promise<readonly ModelObject[]> {
    const { catalog, upstreams, token } = this.#deps
    // the question is our own: the gateway that asks waits for this answer before it gives its own
    if (passed.includes(token)) return catalog.models()
    await upstreams.refresh(waitsForFailed ? 'empty' : 'untried', signal, passed)
    void upstreams.refresh('old', signal, passed)
    return catalog.models()
  }

  /** One row of `GET /v1/models`; missing lists are waited for only while no row has the id. Throws `notListed`. */
  async row (id: string, signal: AbortSignal): Promise<ModelObject> {
    const { catalog, upstreams } = this.#deps
    const rowOf = (name: string): ModelObject | undefined => catalog.models().find(row => row.id === name)
    const find = (): ModelObject | undefined => rowOf(id) ?? rowOf(catalog.spelling(id) ?? id)
    const known = find()
    if (known !== undefined) return known
    const { controller: enough, dispose } = linkedAbort(signal)
    await upstreams.refresh('untried', enough.signal, [], () => {
      if (find() !== undefined) enough.abort()
    })
    dispose()
    const found = find()
    if (found !== undefined) return found
    const route = catalog.resolveAnywhere(id)
    throw notListed(id, route, route?.kind === 'slot' && rowOf(route.slot) !== undefined)
  }

  /** What a client is told of a dead end, in the words that it used. */
  refusal (deadEnd: DeadEnd, model: string, surface: SurfaceName): SvcError {
    return resolutionError(deadEnd, model, surface, this.#deps.catalog.meantBy(model))
  }

  #resolve (model: string, surface: SurfaceName): Resolution {
    const { catalog } = this.#deps
    const found = catalog.resolve(model, surface)
    return isRoute(found) || !mayBeRemote(found) ? found : fullNameRoute(catalog.snapshot, model) ?? found
  }

  /** Whether a list that is still to come could send the name elsewhere: a full name wins, then the order of the upstreams. */
  #isContested (name: string, upstream: string): boolean {
    const { catalog, upstreams } = this.#deps
    const model = catalog.meantBy(name)
    const all = upstreams.all()
    const isFull = model.startsWith(`${upstream}/`)
    const rivals = isFull
      ? all.filter(row => row.name === upstream)
      : all.filter((row, index) => model.startsWith(`${row.name}/`) || index < all.findIndex(({ name: other }) => other === upstream))
    return rivals.some(row => upstreams.isAwaited(row.name))
  }
}

/** An upstream that has the name comes before the slot that it usually means, or nearly names. */
function isUsual (route: Route): boolean {
  return route.kind === 'slot' && (route.via === 'usual' || route.via === 'spelling')
}
