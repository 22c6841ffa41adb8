import type { Clock } from '../../contract/index.js'
import { Throughput } from '../../slots/life/engine/throughput.js'

/** Counters of upstreams, each from its first call on. */
export class UpstreamMeters {
  readonly #clock: Clock
  readonly #meters = new Map<string, Throughput>()

  constructor (clock: Clock) {
    this.#clock = clock
  }

  of (name: string): Throughput {
    let meter = this.#meters.get(name)
    if (meter === undefined) this.#meters.set(name, meter = new Throughput(this.#clock))
    return meter
  }

  /** Those that have counted anything. */
  all (): ReadonlyMap<string, Throughput> {
    return this.#meters
  }

  /** Forgets the others. */
  keep (names: ReadonlySet<string>): void {
    for (const name of this.#meters.keys()) if (!names.has(name)) this.#meters.delete(name)
  }
}
