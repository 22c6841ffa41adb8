import { svcError, type SvcError } from '../../contract/index.js'

/** Least Retry-After of a slot that image mode keeps down, and the one where no end of it is known. Seconds. */
const LEAST_RETRY_S = 15
const UNKNOWN_RETRY_S = 60

/** @param restoreInMs time until image mode ends by itself; null when it does not */
export function imageMode (slot: string, restoreInMs: number | null): SvcError {
  const wait = restoreInMs === null ? UNKNOWN_RETRY_S : Math.max(LEAST_RETRY_S, Math.ceil(restoreInMs / 1000))
  return svcError('gpu.image_mode',
    `slot '${slot}' is down while its GPU is in image mode; it comes back when no image was requested for a while, or when image mode ends`,
    { details: { slot, retry_after_s: wait } })
}

export function gpuPinned (): SvcError {
  return svcError('gpu.pinned', 'image mode is pinned; use force to end it anyway, or unpin it')
}

export function switchFailed (reason: string | null): SvcError {
  return svcError('gpu.switch_failed', `image mode cannot be entered: ${reason ?? 'the switch failed'}`, { details: { reason } })
}

export function pinNotKept (reason: string | null): SvcError {
  return svcError('config.write_failed', `the pin lasts only until the gateway stops: ${reason ?? 'it cannot be saved'}`, { details: { reason } })
}

export function imageModeEnded (): SvcError {
  return svcError('slot.stopped', 'image mode was ended while the request waited for it', { details: { retry_after_s: 1 } })
}

export function noImageSlot (): SvcError {
  return svcError('gpu.img_slot_missing', 'no enabled image slot runs on a GPU; create one with `svc slot create img --type image`')
}
