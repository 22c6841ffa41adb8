import {
  gpusOf, type Clock, type ConfigService, type Device, type HardwareService, type ModelRegistry, type SlotService
} from 'svc-gateway/plugin'
import { capabilityChildren, capabilityChoices, capabilityGroupOf } from '../../services/capabilities/ref.js'
import type { CapabilityOverlay, HostBackend } from '../capabilities/ref.js'
import { deviceMemory } from './device-memory.js'
import type { Backend } from './schemas.js'

export interface BackendServices {
  readonly clock: Clock
  readonly config: ConfigService
  readonly hardware: HardwareService
  readonly models: ModelRegistry
  readonly overlay: CapabilityOverlay
  readonly slots: SlotService
}

const MIB = 1024 * 1024

export async function backendView (services: BackendServices, host: HostBackend): Promise<Backend> {
  const { hardware: { info }, slots } = services
  const running = slots.names().filter(name => slots.device(name) === host.id && slots.status(name).engineId !== null)
  const memory = await deviceMemory(host.id, info)
  return {
    ...host,
    ...nameOf(host.id, services),
    state: host.provider === null ? 'offline' : 'ready',
    memUsedMb: memory.used,
    memTotalMb: memory.total,
    totalReqPerSec: Math.round(running.reduce((sum, name) => sum + requestRate(services, name), 0) * 100) / 100,
    loaded: running.map(name => loadedView(services, name))
  }
}

function nameOf (device: Device, { hardware: { info } }: BackendServices): Pick<Backend, 'hardware' | 'driver'> {
  if (device === 'cpu') return { hardware: info.cpu_model, driver: '' }
  if (device === 'npu') return { hardware: info.npu.name, driver: info.npu.driver }
  const gpus = gpusOf(device, info.gpus)
  return { hardware: gpus.map(gpu => gpu.name).join(', '), driver: [...new Set(gpus.map(gpu => gpu.driver))].join(', ') }
}

function requestRate ({ clock, slots }: BackendServices, name: string): number {
  const { startedAt } = slots.status(name)
  return startedAt === null ? 0 : slots.metrics(name).requestCount / Math.max(1, (clock.now() - startedAt) / 1000)
}

function loadedView ({ config, models, overlay, slots }: BackendServices, name: string): Backend['loaded'][number] {
  const { modelId } = slots.status(name)
  const capabilities = capabilityChoices.of(config.snapshot)
  const child = capabilityChildren.find(other => capabilities[other]?.enabled === true && overlay.slotOf(other) === name)
  const bytes = modelId === null ? 0 : models.get(modelId)?.size_bytes ?? 0
  return {
    slot: child === undefined ? null : capabilityGroupOf(child),
    child: child ?? null,
    slotName: name,
    modelId,
    sizeMb: bytes === 0 ? null : Math.ceil(bytes / MIB),
    source: child === undefined ? 'slot' : 'capability'
  }
}
