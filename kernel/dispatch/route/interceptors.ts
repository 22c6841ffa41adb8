import { svcError, type ForwardOptions, type Interceptor, type RouteCall, type SurfaceName } from '../../contract/index.js'
import type { BodyView } from '../body/body-view.js'

interface Entry {
  readonly flag: string
  readonly answer: Interceptor
}

/** Plugins that take requests over when a flag in the body says so (contract `DispatchService.intercept`). */
export class Interceptors {
  readonly #bySurface = new Map<SurfaceName, readonly Entry[]>()

  add (surface: SurfaceName, flag: string, answer: Interceptor, isFirst: boolean): () => void {
    const known = this.#bySurface.get(surface) ?? []
    if (known.some(entry => entry.flag === flag)) throw svcError('plugin.conflict', `'${flag}' on ${surface} requests is taken over already`)
    const entry = { flag, answer }
    this.#bySurface.set(surface, isFirst ? [entry, ...known] : [...known, entry])
    return () => {
      this.#bySurface.set(surface, (this.#bySurface.get(surface) ?? []).filter(one => one !== entry))
    }
  }

  /** Whether an interceptor has taken the request over. */
  take (call: RouteCall<unknown, unknown, Buffer>, options: ForwardOptions, view: BodyView): boolean {
    const entries = this.#bySurface.get(options.surface)
    if (entries === undefined) return false
    return entries.some(({ flag, answer }) => view.has(flag) && !view.isFalse(flag) && answer(call, options))
  }
}
