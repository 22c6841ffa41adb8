import type { Logger } from '../../contract/index.js'
import type { Visit } from './guards.js'

const MOST_REMEMBERED = 256

/** Tells an operator once who was refused, and the line that lets them in. Bounded against made-up names. */
export class RefusalLog {
  readonly #log: Logger
  readonly #told = new Set<string>()

  constructor (log: Logger) {
    this.#log = log
  }

  host ({ host = '', remote }: Pick<Visit, 'host' | 'remote'>): void {
    const name = host.slice(0, 200).replace(/:\d*$/, '')
    if (!this.#isNew(`host ${name}`)) return
    this.#log.warn({ host: name, remote }, `refused a request for the host name '${name}'; if it is this gateway's, add to [server] of svc.toml: allowed_hosts = ["${name}"]`)
  }

  /** A request without an origin is one that the browser called cross-site. */
  origin ({ origin, path }: Pick<Visit, 'origin' | 'path'>): void {
    const page = origin?.slice(0, 200) ?? ''
    if (!this.#isNew(`origin ${page}`)) return
    if (page === '') {
      this.#log.warn({ path: path.slice(0, 200) }, 'refused a request from a page of another site without an Origin header')
      return
    }
    this.#log.warn({ origin: page, path: path.slice(0, 200) },
      `refused a page of ${page}; to allow it, add to [server] of svc.toml: allowed_origins = ["${page}"], or ["${page}/v1"] for /v1 alone`)
  }

  #isNew (key: string): boolean {
    if (this.#told.has(key) || this.#told.size >= MOST_REMEMBERED) return false
    this.#told.add(key)
    return true
  }
}
