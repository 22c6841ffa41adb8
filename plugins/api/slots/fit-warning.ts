import { stat } from 'node:fs/promises'
import { memoryFit } from 'svc-gateway/plugin'
import type { SlotApi } from './slot-api.js'

/**
 * Why a slot's device is not here, or the weights of its model may not have room on it; null when they have, or when
 * their size or the device's memory is not known. It hinders nothing: the operator may know better.
 */
export async function fitWarning ({ slots, models, hardware }: SlotApi, name: string): Promise<string | null> {
  if (!slots.names().includes(name)) return null
  const device = slots.device(name)
  const [absent] = (await slots.troubles(name)).filter(({ what }) => what === 'device')
  if (absent !== undefined) return absent.message
  const model = slots.config(name).model.default
  if (model === null) return null
  const { status, reasons } = memoryFit(await sizeOf(models, model), device, hardware.info)
  if (status === 'fits' || status === 'unknown') return null
  const advice = status === 'tight' ? 'a long context may not fit' : 'choose a smaller quantisation or another device'
  return `${device}: ${reasons.join('; ')}; ${advice}`
}

/** Bytes; 0 if unknown. */
async function sizeOf (models: SlotApi['models'], model: string): Promise<number> {
  const known = models.get(model)
  if (known !== undefined && known.size_bytes > 0) return known.size_bytes
  const path = known?.path ?? model
  return await stat(path).then(({ size }) => size, () => 0)
}
