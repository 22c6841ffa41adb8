import {
  deviceClassOf, gpusOfSlot, mainGpuOf, type EngineClient, type GpuInfo, type GpuMode, type GpuStatus,
  type HardwareService, type NamedSlotConfig, type SlotStatus
} from 'svc-gateway/plugin'
import type { RunView } from '../../providers/imagegen/ref.js'
import { readGauges, type Gauges } from './gauges.js'
import { imageSlot, lookAt, type EngineLook, type ImageSlotServices } from './image-slot.js'
import type { ComfyMode, ComfyStatus } from './schemas.js'

export interface StatusServices extends ImageSlotServices {
  readonly hardware: HardwareService
}

/** Everything about the image engine. What cannot be learned is null or nothing; it never fails for it. */
export async function comfyStatus (services: StatusServices, signal: AbortSignal): Promise<ComfyStatus> {
  const { engine, gpu, hardware, slots } = services
  const slot = imageSlot(services)
  const status = slot === null ? null : slots.status(slot.name)
  const client: EngineClient | null = slot === null ? null : slots.client(slot.name)
  const [look, inventory, gauges] = await Promise.all([
    lookAt(services, client, signal),
    engine.inventory(),
    readGauges(slot === null ? undefined : gpuOf(slot, hardware.info.gpus))
  ])
  return {
    ...view(status, look, gauges, slot === null ? null : engine.running(slot.name), gpu.status()),
    // this release brings no agent, so there is none whose model could be up
    inference: {},
    inventory
  }
}

/** Pure. */
export function view (
  status: SlotStatus | null, { reachable, jobs }: EngineLook, gauges: Gauges, run: RunView | null, gpu: GpuStatus
): Omit<ComfyStatus, 'inference' | 'inventory'> {
  const container = containerOf(status)
  const engine = engineState(reachable, jobs.running, container.state)
  return {
    mode: modeName(gpu.mode),
    slot: status?.name ?? null,
    reachable,
    engine,
    container,
    endpoint: status === null || status.port === null ? null : `:${status.port}`,
    memory: gauges.memory,
    queue: jobs,
    util: engine === 'generating' ? gauges.util : null,
    temp: gauges.temp,
    clock: gauges.clock,
    it_s: run?.perSecond ?? null,
    eta: run?.etaS ?? null,
    step: run === null ? null : { value: run.value, max: run.max },
    switchover: { active: gpu.switching, target: gpu.switching ? modeName(gpu.mode) : null, error: gpu.error },
    arbiter: gpu.image_slots.length === 0 ? null : arbiterView(gpu)
  }
}

export function modeName (mode: GpuMode): ComfyMode {
  return mode === 'img' ? 'generation' : 'inference'
}

/** What the engine does, by its answers first and by its container where it does not answer. Pure. */
export function engineState (reachable: boolean, running: number, container: ComfyStatus['container']['state']): ComfyStatus['engine'] {
  if (reachable) return running > 0 ? 'generating' : 'running'
  return container === 'running' ? 'starting' : 'stopped'
}

/** An engine that is being started has no id yet, and one whose load failed is gone. */
function containerOf (status: SlotStatus | null): ComfyStatus['container'] {
  if (status === null) return { name: null, state: 'absent' }
  const { engineId, engineName: name, state, failure } = status
  if (engineId !== null || state === 'starting' || state === 'warming') return { name, state: 'running' }
  return { name, state: failure === null ? 'absent' : 'exited' }
}

function arbiterView (gpu: GpuStatus): ComfyStatus['arbiter'] {
  const { mode, pinned, last_img_activity, idle_restore_minutes, idle_restore_at } = gpu
  return {
    mode,
    pinned,
    image_slots: [...gpu.image_slots],
    llm_slots: [...gpu.llm_slots],
    saved_llm_slots: [...gpu.saved_llm_slots],
    last_img_activity,
    idle_restore_minutes,
    idle_restore_at
  }
}

/** The GPU that a slot runs on, where that can be told. */
function gpuOf (slot: NamedSlotConfig, gpus: readonly GpuInfo[]): GpuInfo | undefined {
  if (slot.device !== undefined && deviceClassOf(slot.device) !== 'gpu') return undefined
  return mainGpuOf(gpusOfSlot(slot.device ?? 'gpu-rocm', slot.gpu_index, gpus))
}
