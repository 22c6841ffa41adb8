import { z } from 'zod'

/** The closed vocabularies of slot files. */
export const devices = ['gpu-rocm', 'gpu-vulkan', 'gpu-cuda', 'cpu', 'npu'] as const
export type Device = typeof devices[number]
export const deviceSchema = z.enum(devices)

export const slotTypes = ['llm', 'embedding', 'reranking', 'transcription', 'tts', 'image'] as const
export type SlotType = typeof slotTypes[number]
export const slotTypeSchema = z.enum(slotTypes)

export const slotStates = ['offline', 'pulling', 'starting', 'warming', 'ready', 'serving', 'idle', 'unloading', 'error'] as const
export type SlotState = typeof slotStates[number]
export const slotStateSchema = z.enum(slotStates)

export const deviceClasses = ['gpu', 'cpu', 'npu', 'img'] as const
export type DeviceClass = typeof deviceClasses[number]
export const deviceClassSchema = z.enum(deviceClasses)

export const gpuBackends = ['rocm', 'vulkan', 'cuda'] as const
export type GpuBackend = typeof gpuBackends[number]
export const gpuBackendSchema = z.enum(gpuBackends)

export const slotRoles = ['primary', 'utility', 'npu'] as const
export type SlotRole = typeof slotRoles[number]

/** The role of a slot: the one it was given, else the one that its name says. */
export function slotRoleOf ({ name, role }: { readonly name: string, readonly role: SlotRole | null }): SlotRole | null {
  if (role !== null) return role
  return name === 'agent' ? 'primary' : slotRoles.find(known => known === name) ?? null
}

export const modelCapabilities = ['chat', 'vision', 'embed', 'rerank', 'asr', 'tts', 'image'] as const
export type ModelCapability = typeof modelCapabilities[number]

/** Other words for a capability, in the direction that readers need. */
export const capabilityAliases: Readonly<Record<string, ModelCapability>> = {
  llm: 'chat',
  text: 'chat',
  embedding: 'embed',
  embeddings: 'embed',
  reranking: 'rerank',
  reranker: 'rerank',
  stt: 'asr',
  transcription: 'asr',
  speech: 'tts',
  img: 'image'
}

/** The short name of the hardware behind a device, as the CLI's `--hardware` and slot records spell it. */
export const deviceBackends: Readonly<Record<Device, string>> = {
  'gpu-rocm': 'rocm', 'gpu-vulkan': 'vulkan', 'gpu-cuda': 'cuda', 'cpu': 'cpu', 'npu': 'npu-rt'
}

export function deviceClassOf (device: Device): DeviceClass {
  if (device === 'cpu' || device === 'npu') return device
  return 'gpu'
}

export function gpuBackendOf (device: Device): GpuBackend | null {
  return device === 'cpu' || device === 'npu' ? null : device.slice('gpu-'.length) as GpuBackend
}

/**
 * What the deprecated slot key `backend` says about the device, besides words of providers (`ProviderFacts.deviceWords`); names
 * of devices stand for themselves.
 */
export const backendDevices: Readonly<Record<string, Device>> = Object.fromEntries([
  ...devices.filter(device => device !== 'npu').map(device => [deviceBackends[device], device] as const),
  ['npu', 'npu'], [deviceBackends.npu, 'npu']
])
