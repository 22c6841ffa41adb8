import { aboutText, type Clock, type EventBus } from '../../contract/index.js'
import { withBudget } from '../../async/budget.js'
import type { ContainerRuntime } from '../../contract/provider/engine-runtime.js'
import { imagesOf } from '../../runtime/runtime-set.js'
import type { PreparedLaunch } from '../plan/launch/prepared-launch.js'
import { overspent } from './launch-errors.js'
import type { Report } from './launch-report.js'

export interface ImageFetchDeps {
  readonly runtime: ContainerRuntime
  readonly clock: Clock
  readonly events: EventBus
  /** How long the pull may take. */
  readonly imagePullMs: number
}

/** Pulls the image of a launch where it is not there yet, and tells whose it is and how far the pull is. */
export async function fetchImage (
  slot: string, { image, provider, spec }: PreparedLaunch, { runtime, clock, events, imagePullMs }: ImageFetchDeps,
  signal: AbortSignal, report: Report
): Promise<void> {
  if (image === null) return
  const images = imagesOf(runtime, spec.runtime ?? null)
  if (image.warning !== null) {
    events.emit({ type: 'slot.image', severity: 'warn', source: `slot:${slot}`, message: image.warning, data: { slot, image: image.ref } })
  }
  if (await images.imagePresent(image.ref, image.digest, signal)) return
  const whose = provider.about === undefined ? null : `${provider.title}, ${aboutText(provider.about)}`
  report('pulling', `pulling ${image.ref}${whose === null ? '' : `: ${whose}`}`)
  if (whose !== null) {
    events.emit({ type: 'slot.image', source: `slot:${slot}`, message: `pulling ${image.ref}: ${whose}`, data: { slot, image: image.ref } })
  }
  await withBudget(clock, imagePullMs, signal, () => overspent(slot, `pulling ${image.ref}`, imagePullMs, 'image_pull_timeout_s'), inner =>
    images.pull(image.ref, image.digest, progress => {
      const { layer, totalLayers, currentBytes, totalBytes } = progress
      report('pulling', `pulling ${image.ref}: ${layer} of ${totalLayers} layers`, totalBytes > 0 ? currentBytes / totalBytes : null)
      events.emit({
        type: 'pull.progress',
        source: `slot:${slot}`,
        message: `${image.ref}: ${layer} of ${totalLayers} layers`,
        data: { slot, image: image.ref, ...progress }
      })
    }, inner))
}
