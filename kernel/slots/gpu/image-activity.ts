import type { Clock } from '../../contract/index.js'
import { WallTime } from '../../state/wall-time.js'
import type { GpuSlots } from './arbitrated-slots.js'
import { idleRestoreMinutes, type GpuGroups } from './gpu-groups.js'

/** When images were last made, and when the GPU goes back to the other slots for want of them. Times are monotonic. */
export class ImageActivity {
  readonly #clock: Clock
  readonly #slots: Pick<GpuSlots, 'lastUsedAt'>
  readonly #wall: WallTime
  #last: number | null = null
  #openedAt = 0

  constructor (clock: Clock, slots: Pick<GpuSlots, 'lastUsedAt'>) {
    this.#clock = clock
    this.#slots = slots
    this.#wall = new WallTime(clock)
  }

  /** Goes on from what an earlier run has kept, in seconds of wall time; null: it knew of none. */
  open (keptS: number | null): void {
    this.#openedAt = this.#clock.monotonic()
    this.#last = keptS === null ? null : this.#wall.back(keptS * 1000)
  }

  used (): void {
    this.#last = this.#clock.monotonic()
  }

  /** Null where none was made. */
  at ({ img }: GpuGroups): number | null {
    const times = [this.#last, ...img.map(({ name }) => this.#slots.lastUsedAt(name))].filter(time => time !== null)
    return times.length === 0 ? null : Math.max(...times)
  }

  /** Null where nothing ends image mode by itself. */
  restoreAt (groups: GpuGroups): number | null {
    const minutes = idleRestoreMinutes(groups)
    return minutes === 0 ? null : (this.at(groups) ?? this.#openedAt) + minutes * 60_000
  }

  /** Epoch milliseconds. */
  shown (at: number | null): number | null {
    return at === null ? null : this.#wall.of(at)
  }
}
