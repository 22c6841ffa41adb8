import {
  fitStatuses, memoryFit, type Device, type EngineProvider, type FitStatus, type HardwareInfo, type ModelCapability, type SlotType
} from 'svc-gateway/plugin'

/** How a model of the catalogue suits this machine. `unsupported` is a model that no engine runs on the machine's devices. */
export interface CatalogueFit {
  readonly status: FitStatus | 'unsupported'
  /** Null for `unsupported`. */
  readonly device: Device | null
  readonly reasons: readonly string[]
}

export interface FitFacts {
  readonly hardware: HardwareInfo
  /** The device of a slot without one. */
  readonly defaultDevice: Device
  readonly providers: ReadonlyArray<Pick<EngineProvider, 'devices' | 'slotTypes'>>
}

const typeOfCapability: Readonly<Record<ModelCapability, SlotType>> = {
  chat: 'llm', vision: 'llm', embed: 'embedding', rerank: 'reranking', asr: 'transcription', tts: 'tts', image: 'image'
}

/** On the device that a slot gets by default, else on the CPU, whichever suits better; the default wins between equals. Pure. */
export function catalogueFit (
  { capability, size_gb: gigabytes }: { readonly capability: ModelCapability, readonly size_gb: number },
  { hardware, defaultDevice, providers }: FitFacts
): CatalogueFit {
  const type = typeOfCapability[capability]
  const fits = [...new Set<Device>([defaultDevice, 'cpu'])]
    .filter(device => providers.some(({ devices, slotTypes }) => devices.includes(device) && slotTypes.includes(type)))
    .map(device => ({ device, ...memoryFit(Math.round(gigabytes * 1e9), device, hardware) }))
    .sort((a, b) => fitStatuses.indexOf(a.status) - fitStatuses.indexOf(b.status))
  return fits[0] ?? { status: 'unsupported', device: null, reasons: [`no engine for ${type} slots runs on this machine's devices`] }
}
