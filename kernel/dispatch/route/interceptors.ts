import { svcError, type ForwardOptions, type Interceptor, type SurfaceName, type TakenAnswer, type TakenRequest } from '../../contract/index.js'
import type { BodyView } from '../body/body-view.js'

interface Entry {
  readonly flag: string
  readonly take: Interceptor
}

/** Plugins that take requests over when a flag in the body says so (contract `DispatchService.intercept`). */
export class Interceptors {
  readonly #bySurface = new Map<SurfaceName, readonly Entry[]>()

  add (surface: SurfaceName, flag: string, take: Interceptor, isFirst: boolean): () => void {
    const known = this.#bySurface.get(surface) ?? []
    if (known.some(entry => entry.flag === flag)) throw svcError('plugin.conflict', `'${flag}' on ${surface} requests is already taken`)
    const entry = { flag, take }
    this.#bySurface.set(surface, isFirst ? [entry, ...known] : [...known, entry])
    return () => {
      this.#bySurface.set(surface, (this.#bySurface.get(surface) ?? []).filter(one => one !== entry))
    }
  }

  /** What the first one that takes the request over answers; null if none does. */
  taken (request: TakenRequest, options: ForwardOptions, view: BodyView): TakenAnswer | null {
    for (const { flag, take } of this.#bySurface.get(options.surface) ?? []) {
      const answer = view.has(flag) && !view.isFalse(flag) ? take(request, options) : null
      if (answer !== null) return answer
    }
    return null
  }
}
