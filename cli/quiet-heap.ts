import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const LOOK_MS = 5_000
const MIB = 2 ** 20
/** What timers and checks of engines that are ready make between two looks is a tenth of it. */
const CALM_BYTES = MIB
/** V8 begins with 1 MiB, and takes up to 32 while requests come. */
const YOUNG_BYTES = 6 * MIB
/** V8 gives nothing back that was needed within the last five seconds. */
const CALM_LOOKS = 2
const MOST_CALM_LOOKS = 128

/** A heap at one moment, in bytes. */
export interface HeapLook {
  /** By what lives and what is not collected yet. */
  readonly used: number
  /** What the system has given for the young generation. */
  readonly young: number
}

/**
 * When a heap should be collected although nothing asks for room: what a burst of requests took of the system stays taken
 * until a full collection, which a gateway that is idle never gets to. Due once nothing was allocated to speak of for some
 * looks in a row while the young generation is large; after collections that did not make it small, each time later.
 */
export class QuietHeap {
  #used = Infinity
  #calm = 0
  #wanted = CALM_LOOKS
  #collected = false

  /** Whether to collect now; the next look is expected to be one behind it. */
  isDue ({ used, young }: HeapLook): boolean {
    const grown = used - this.#used
    this.#used = used
    const isLarge = young > YOUNG_BYTES
    if (this.#collected) {
      this.#wanted = isLarge ? Math.min(this.#wanted * 2, MOST_CALM_LOOKS) : CALM_LOOKS
      this.#collected = false
      this.#calm = 0
      return false
    }
    // a collection came in between, so that more was allocated than is seen
    this.#calm = grown >= 0 && grown < CALM_BYTES ? this.#calm + 1 : 0
    if (!isLarge || this.#calm < this.#wanted) return false
    this.#collected = true
    return true
  }
}

/** Collects the whole heap now, 5 to 15 ms for that of a gateway. */
export function collect (): void {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  // V8 takes cached code only under the flags that it was made under
  setFlagsFromString('--no-expose-gc')
  gc()
}

/** Gives memory back to the system when requests have stopped, for the life of the process. */
export function collectWhenQuiet (): void {
  const quiet = new QuietHeap()
  setInterval(() => {
    const young = getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space')?.space_size ?? 0
    if (quiet.isDue({ used: getHeapStatistics().used_heap_size, young })) collect()
  }, LOOK_MS).unref()
}
