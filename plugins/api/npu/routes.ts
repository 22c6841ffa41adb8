import {
  defineRoute, type AnyRoute, type EngineModel, type EventBus, type HardwareService, type ModelRegistry, type ProviderCatalog,
  type SlotService
} from 'svc-gateway/plugin'
import { gigabytes } from '../../services/library/ref.js'
import { occupancy } from './occupancy.js'
import { engineModelsSchema, occupancySchema, swapStatusSchema } from './schemas.js'
import { swapStatus } from './swap-status.js'

export interface NpuApi {
  readonly events: EventBus
  readonly hardware: HardwareService
  readonly models: ModelRegistry
  readonly providers: ProviderCatalog
  readonly slots: SlotService
}

export function npuRoutes (api: NpuApi): AnyRoute[] {
  const { events, hardware, slots } = api
  return [
    defineRoute({
      method: 'GET',
      url: '/api/npu/swap-status',
      tag: 'NPU',
      summary: 'Model switch of the NPU, if one is under way',
      schema: { response: swapStatusSchema },
      tool: {
        name: 'npu_status',
        title: 'State of the NPU',
        description: 'Shows whether the NPU is switching its model, from which to which. Call it when a slot on the NPU does not answer yet.',
        readOnly: true
      },
      handler: () => {
        const anchors = npuSlots(slots).filter(name => slots.config(name).served_by === null).map(name => slots.status(name))
        return swapStatus(anchors, events.list({ type: 'slot.state', limit: 500 }).events)
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/npu/occupancy',
      tag: 'NPU',
      summary: 'Slots on the NPU',
      schema: { response: occupancySchema },
      handler: async () => {
        const sizes = new Map((await engineModels(api)).map(({ id, sizeBytes }) => [id, sizeBytes]))
        const rows = npuSlots(slots).map(name => ({ status: slots.status(name), anchor: slots.config(name).served_by }))
        return occupancy(hardware.info, rows, sizes)
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/slots/flm/models',
      tag: 'NPU',
      summary: 'Models that the engine of the NPU can run',
      schema: { response: engineModelsSchema },
      handler: async () => ({
        models: (await engineModels(api)).map(({ id, installed, capabilities, family, sizeBytes }) =>
          ({ model: id, installed, capabilities: [...capabilities], family, size_gb: gigabytes(sizeBytes) }))
      })
    })
  ]
}

function npuSlots (slots: SlotService): readonly string[] {
  return slots.names().filter(name => slots.device(name) === 'npu')
}

/** Of all engines that run on an NPU and have models of their own. */
async function engineModels ({ models, providers }: NpuApi): Promise<readonly EngineModel[]> {
  const engines = providers.list().filter(({ devices }) => devices.includes('npu'))
  return (await Promise.all(engines.map(engine => engine.models?.list(models.engineStore(engine)) ?? []))).flat()
}
