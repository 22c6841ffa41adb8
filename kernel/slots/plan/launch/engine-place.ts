import { deviceSchema, NO_PROVIDER, slotConfigSchema, slotTypeSchema, type Device, type NamedSlotConfig } from '../../../contract/index.js'
import { LABEL_PLACE, type EngineInspection } from '../../../contract/provider/engine-runtime.js'

/** A slot and the device it runs on. */
interface Place {
  readonly slot: NamedSlotConfig
  readonly device: Device
}

/** Value of `LABEL_PLACE`: `<type> <device> <GPU index or all>`. Pure. */
export function placeLabel ({ slot: { type, gpu_index: gpu }, device }: Place): string {
  return `${type} ${device} ${gpu ?? 'all'}`
}

/** What an engine's label says of the slot it was started for; null for one that an older release started. Pure. */
export function placeOf (name: string, { labels }: Pick<EngineInspection, 'labels'>): Place | null {
  const [type, device, gpu] = (labels[LABEL_PLACE] ?? '').split(' ')
  const parsed = { type: slotTypeSchema.safeParse(type).data, device: deviceSchema.safeParse(device).data }
  if (parsed.type === undefined || parsed.device === undefined) return null
  const index = /^\d+$/.test(gpu ?? '') ? Number(gpu) : null
  const slot = slotConfigSchema.parse({ ...parsed, gpu_index: index })
  return { slot: { ...slot, name, provider: NO_PROVIDER }, device: parsed.device }
}
