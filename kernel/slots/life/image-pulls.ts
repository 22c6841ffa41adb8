import { isSvcError, messageOf, svcError, type EventBus, type ImagePullStatus } from '../../contract/index.js'
import type { ContainerRuntime } from '../../contract/provider/engine-runtime.js'
import type { ResolvedImage } from '../../runtime/image/image-manifest.js'
import { SnapshotFeed } from '../../async/snapshot-feed.js'

type Images = Pick<ContainerRuntime, 'imagePresent' | 'pull'>

interface Pull {
  status: ImagePullStatus
  readonly feed: SnapshotFeed<ImagePullStatus>
  readonly controller: AbortController
  done: Promise<void>
}

/** Image pulls asked for by an operator: one at a time per slot, followed by any number of readers. */
export class ImagePulls {
  readonly #images: (slot: string) => Images
  readonly #events: EventBus
  readonly #pulls = new Map<string, Pull>()

  readonly #onCompleted: () => void

  /**
   * @param images where a slot's engine finds its image
   * @param onCompleted an image is there that was not
   */
  constructor (images: (slot: string) => Images, events: EventBus, onCompleted: () => void = () => {}) {
    this.#onCompleted = onCompleted
    this.#images = images
    this.#events = events
  }

  /** Starts a pull, or joins the one that runs. */
  start (slot: string, image: ResolvedImage): { resumed: boolean, status: ImagePullStatus } {
    const running = this.#pulls.get(slot)
    if (running?.status.state === 'pulling') return { resumed: true, status: running.status }
    const pull: Pull = {
      status: { ...blank(slot, image.ref), state: 'pulling' },
      feed: new SnapshotFeed(),
      controller: new AbortController(),
      done: Promise.resolve()
    }
    this.#pulls.set(slot, pull)
    pull.done = this.#run(slot, image, pull)
    return { resumed: false, status: pull.status }
  }

  async status (slot: string, image: ResolvedImage, signal: AbortSignal): Promise<ImagePullStatus> {
    const pull = this.#pulls.get(slot)
    if (pull !== undefined && pull.status.image === image.ref && pull.status.state !== 'completed') return pull.status
    const present = await this.#images(slot).imagePresent(image.ref, image.digest, signal)
    return { ...blank(slot, image.ref), state: present ? 'present' : 'missing' }
  }

  /** Snapshots up to and including the terminal one. */
  async* watch (slot: string, image: ResolvedImage, signal: AbortSignal): AsyncGenerator<ImagePullStatus> {
    const pull = this.#pulls.get(slot)
    if (pull?.status.state !== 'pulling') {
      yield await this.status(slot, image, signal)
      return
    }
    yield* pull.feed.read(() => pull.status, signal)
  }

  /** Pulls the image unless it is there; resolves with how that ended. */
  async fetch (slot: string, image: ResolvedImage, signal: AbortSignal): Promise<ImagePullStatus> {
    let status = await this.status(slot, image, signal)
    if (status.state === 'present') return status
    this.start(slot, image)
    for await (status of this.watch(slot, image, signal));
    signal.throwIfAborted()
    return status
  }

  async close (): Promise<void> {
    const pulls = [...this.#pulls.values()]
    for (const pull of pulls) pull.controller.abort(svcError('gateway.stopping', 'the gateway is shutting down'))
    await Promise.all(pulls.map(pull => pull.done))
  }

  async #run (slot: string, image: ResolvedImage, pull: Pull): Promise<void> {
    const update = (patch: Partial<ImagePullStatus>): void => {
      pull.status = { ...pull.status, ...patch }
      pull.feed.publish(pull.status)
      this.#events.emit({
        type: `pull.${pull.status.state === 'pulling' ? 'progress' : pull.status.state}`,
        severity: pull.status.state === 'failed' ? 'error' : 'info',
        source: `slot:${slot}`,
        message: `${image.ref}: ${pull.status.error ?? pull.status.state}`,
        data: { ...pull.status }
      })
    }
    try {
      await this.#images(slot).pull(image.ref, image.digest, progress => update({
        layer: progress.layer,
        total_layers: progress.totalLayers,
        current_bytes: progress.currentBytes,
        total_bytes: progress.totalBytes
      }), pull.controller.signal)
      update({ state: 'completed' })
      this.#onCompleted()
    } catch (error) {
      const stopped = pull.controller.signal.aborted
      update({ state: stopped ? 'cancelled' : 'failed', error: isSvcError(error) ? error.message : messageOf(error) })
    } finally {
      pull.feed.close()
    }
  }
}

function blank (slot: string, image: string): ImagePullStatus {
  return { slot_name: slot, image, state: 'missing', layer: 0, total_layers: 0, current_bytes: 0, total_bytes: 0, error: null }
}
