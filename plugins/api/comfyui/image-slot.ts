import { svcError, within, type EngineClient, type GpuArbiter, type NamedSlotConfig, type SlotService } from 'svc-gateway/plugin'
import type { EngineJobs, ImageEngine } from '../../providers/imagegen/ref.js'
import { comfyuiError } from './errors.js'

export interface ImageSlotServices {
  readonly engine: ImageEngine
  readonly gpu: GpuArbiter
  readonly slots: SlotService
}

/** The slot that `/api/comfyui` is about: on a GPU before one that is not, the default one first. Null without one. */
export function imageSlot ({ engine, gpu, slots }: ImageSlotServices): NamedSlotConfig | null {
  const onGpu = gpu.status().image_slots
  const place = ({ name, default: isDefault }: NamedSlotConfig): number => (onGpu.includes(name) ? 0 : 2) + (isDefault ? 0 : 1)
  const own = slots.names().map(name => slots.config(name)).filter(slot =>
    slot.type === 'image' && slot.enabled && slots.provider(slot.name)?.name === engine.provider)
  return own.sort((a, b) => place(a) - place(b))[0] ?? null
}

/** Throws `gpu.img_slot_missing`. */
export function mustHaveImageSlot (services: ImageSlotServices): NamedSlotConfig {
  const slot = imageSlot(services)
  if (slot !== null) return slot
  throw svcError('gpu.img_slot_missing', 'no image slot is enabled; create one with `svc slot create img --type image`')
}

/** Throws `gpu.img_slot_missing`, or `comfyui.arbiter_unavailable` when the image slot shares no GPU with other slots. */
export function mustArbitrate (services: ImageSlotServices): void {
  const { name } = mustHaveImageSlot(services)
  if (services.gpu.status().image_slots.length > 0) return
  throw comfyuiError('comfyui.arbiter_unavailable',
    `slot '${name}' does not run on a GPU, so there is nothing to switch; give it one with \`svc slot edit ${name} --hardware\``,
    { details: { slot: name, device: services.slots.device(name) } })
}

export interface EngineLook {
  readonly reachable: boolean
  readonly jobs: EngineJobs
}

/** What the engine of a slot works on; one that does not run or answer in time works on nothing. Never rejects. */
export async function lookAt (
  { engine }: ImageSlotServices, client: EngineClient | null, signal: AbortSignal
): Promise<EngineLook> {
  const none = { reachable: false, jobs: { running: 0, pending: 0 } }
  if (client === null) return none
  return await inTime(signal, bound => engine.jobs(client, bound)).then(jobs => ({ reachable: true, jobs }), () => none)
}

/** The engine is given so long to answer. */
const ENGINE_TIMEOUT_MS = 4_000

export function inTime<T> (signal: AbortSignal | null, work: (bound: AbortSignal) => Promise<T>): Promise<T> {
  return within(signal, ENGINE_TIMEOUT_MS, work)
}
