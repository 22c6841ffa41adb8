import { performance, type EventLoopUtilization } from 'node:perf_hooks'
import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const LOOK_MS = 5_000
const MIB = 2 ** 20
/** Timers and checks of engines that are ready take a fiftieth of it. */
const CALM = 0.005
/** V8 begins with 1 MiB, and takes up to 32 while requests come. */
const YOUNG_BYTES = 6 * MIB
/** A young generation that is not large is full of what can go in turns. */
const GROWN_BYTES = 8 * MIB
/** Pages that hardly anything lives in any more; a collection moves together only what the one before has found. */
const SPARE_BYTES = 8 * MIB
/** V8 gives nothing back that was needed within the last five seconds. */
const CALM_LOOKS = 2
const MOST_CALM_LOOKS = 128

/** A heap at one moment, in bytes. */
export interface HeapLook {
  /** By what lives and what is not collected yet, in the heap and held by it. */
  readonly used: number
  /** What the system has given for the young generation. */
  readonly young: number
  /** What the system has given for the rest, and nothing uses. */
  readonly spare: number
  /** Share of the time since the look before in which the event loop had work. */
  readonly busy: number
}

/**
 * When a heap should be collected although nothing asks for room: what a burst of requests took of the system stays taken
 * until a full collection, which a gateway that is idle never gets to. Due once there was nothing to do for some looks in a
 * row while the young generation is large, much is spare, or more is used than was at the least since the first collection,
 * which takes what the start left behind; after collections that changed none of this, each time later.
 */
export class QuietHeap {
  #least = 0
  #calm = 0
  #wanted = CALM_LOOKS
  #collected = false

  /** Whether to collect now; the next look is expected to be one behind it. */
  isDue ({ used, young, spare, busy }: HeapLook): boolean {
    const isLarge = (least: number): boolean => young > YOUNG_BYTES || spare > SPARE_BYTES || used - least > GROWN_BYTES
    if (this.#collected) {
      const isFirst = this.#least === 0
      this.#wanted = isLarge(isFirst ? used : this.#least) ? Math.min(this.#wanted * 2, MOST_CALM_LOOKS) : CALM_LOOKS
      this.#collected = false
      this.#calm = 0
      this.#least = used
      return false
    }
    this.#least = Math.min(this.#least, used)
    this.#calm = busy < CALM ? this.#calm + 1 : 0
    if (!isLarge(this.#least) || this.#calm < this.#wanted) return false
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
  let before = performance.eventLoopUtilization()
  setInterval(() => {
    const now = performance.eventLoopUtilization()
    if (quiet.isDue(lookAt(now, before))) collect()
    before = now
  }, LOOK_MS).unref()
}

function lookAt (now: EventLoopUtilization, before: EventLoopUtilization): HeapLook {
  const { used_heap_size: heap, total_heap_size: total, external_memory: external } = getHeapStatistics()
  const { space_size: young = 0, space_used_size: youngUsed = 0 } = getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space') ?? {}
  const spare = total - young - (heap - youngUsed)
  return { used: heap + external, young, spare, busy: performance.eventLoopUtilization(now, before).utilization }
}
