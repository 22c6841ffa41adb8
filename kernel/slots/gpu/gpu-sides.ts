import type { ConfigService, GpuInfo } from '../../contract/index.js'
import type { GpuSlots } from './arbitrated-slots.js'
import { gpuGroups, sideOf, type GpuGroups, type GpuSide, type PlacedSlot } from './gpu-groups.js'

export interface GpuSidesDeps {
  readonly config: Pick<ConfigService, 'snapshot'>
  readonly slots: GpuSlots
  /** GPUs of this host as they were probed. */
  readonly gpus: () => readonly GpuInfo[]
}

/** Which slots share the GPU, and on whose side each of them is. */
export class GpuSides {
  readonly #deps: GpuSidesDeps
  /** Image slots that there have been since the GPU was last free of them. */
  readonly #images = new Map<string, PlacedSlot>()

  constructor (deps: GpuSidesDeps) {
    this.#deps = deps
  }

  /** As the files say now. */
  groups (): GpuGroups {
    return this.#grouped(this.#placed())
  }

  /**
   * Of a slot; null for one that does not share the GPU. Until the GPU is free of images again, image slots that were taken out
   * of the configuration count as if they were there.
   */
  of (name: string, isFree: boolean): GpuSide | null {
    const placed = this.#placed()
    if (isFree) this.#images.clear()
    for (const place of placed) if (place.slot.type === 'image') this.#images.set(place.slot.name, place)
    return sideOf(this.#grouped([...placed, ...this.#images.values()]), name)
  }

  /** Slots of a side, by what they are or by what they were started as, that have an engine or are about to get one. */
  up (side: GpuSide): string[] {
    const { slots } = this.#deps
    const placed = this.#placed()
    const running = placed.map(place => slots.launchedAs(place.slot.name) ?? place)
    const names = [placed, running].flatMap(places => this.#grouped(places)[side].map(slot => slot.name))
    return [...new Set(names)].filter(name => slots.isUp(name))
  }

  #grouped (placed: readonly PlacedSlot[]): GpuGroups {
    return gpuGroups(placed, this.#deps.gpus())
  }

  #placed (): PlacedSlot[] {
    const { config, slots } = this.#deps
    const here = [...config.snapshot.slots.values()].filter(slot => !slots.isElsewhere(slot))
    const known = here.map(slot => ({ slot, device: slots.device(slot) }))
    return [...known, ...slots.held().filter(({ slot }) => !config.snapshot.slots.has(slot.name))]
  }
}
