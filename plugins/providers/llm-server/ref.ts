import { join } from 'node:path'
import type { Device } from 'svc-gateway/plugin'

/** Name of the engine that is built in, as slots and `svc engine` have it. */
export const EMBEDDED = 'embedded'

/** The package that it computes with. */
export const LIBRARY = 'node-llama-cpp'

/** GPU builds of the library. */
export const libraryGpus = ['cuda', 'vulkan'] as const
export type LibraryGpu = typeof libraryGpus[number]

/** Where `svc engine install embedded` puts the library, below the state folder. */
export function installedFolder (state: string): string {
  return join(state, 'engines', EMBEDDED)
}

/** The library's entry below a folder that it was installed in. */
export function libraryIn (folder: string): string {
  return join(folder, 'node_modules', LIBRARY, 'dist', 'index.js')
}

/** File that exists when a build of the library was installed into the folder. */
export function buildIn (folder: string, build: string): string {
  return join(folder, 'node_modules', ...build.split('/'), 'package.json')
}

const processors: Readonly<Record<string, string>> = {
  'linux-x64': 'linux-x64',
  'linux-arm64': 'linux-arm64',
  'linux-arm': 'linux-armv7l',
  'linux-riscv64': 'linux-riscv64',
  'darwin-arm64': 'mac-arm64-metal',
  'darwin-x64': 'mac-x64',
  'win32-x64': 'win-x64',
  'win32-arm64': 'win-arm64'
}

/** The package with the library's build for a processor, or for a GPU beside it; null when there is none. Pure. */
export function buildFor (platform: string, arch: string, gpu: LibraryGpu | null): string | null {
  const processor = processors[`${platform}-${arch}`]
  if (processor === undefined) return null
  if (gpu === null) return `@${LIBRARY}/${processor}`
  return arch === 'x64' && platform !== 'darwin' ? `@${LIBRARY}/${processor}-${gpu}` : null
}

/** The GPU build that slots of a device need; null for the CPU, undefined where there is none. Pure. */
export function gpuOfDevice (device: Device): LibraryGpu | null | undefined {
  const gpus: Partial<Record<Device, LibraryGpu | null>> = { 'cpu': null, 'gpu-cuda': 'cuda', 'gpu-vulkan': 'vulkan' }
  return gpus[device]
}
