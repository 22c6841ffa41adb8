import { svcError, type ForwardOptions, type Interceptor, type RouteCall, type SurfaceName } from '../../contract/index.js'
import type { BodyView } from '../body/body-view.js'

/** Plugins that take requests over when a flag in the body says so (contract `DispatchService.intercept`). */
export class Interceptors {
  readonly #bySurface = new Map<SurfaceName, { readonly flag: string, readonly answer: Interceptor }>()

  add (surface: SurfaceName, flag: string, answer: Interceptor): () => void {
    const taken = this.#bySurface.get(surface)
    if (taken !== undefined) throw svcError('plugin.conflict', `'${taken.flag}' on ${surface} requests is taken over already`)
    const entry = { flag, answer }
    this.#bySurface.set(surface, entry)
    return () => {
      if (this.#bySurface.get(surface) === entry) this.#bySurface.delete(surface)
    }
  }

  /** Whether an interceptor has taken the request over. */
  take (call: RouteCall<unknown, unknown, Buffer>, options: ForwardOptions, view: BodyView): boolean {
    const entry = this.#bySurface.get(options.surface)
    if (entry === undefined || !(view.isTrue(entry.flag) || view.isObject(entry.flag))) return false
    return entry.answer(call, options)
  }
}
