import type { FlagGrammar, LaunchInput, LaunchSpecInput, ProcessCandidate, ProviderContainerSpec, ProviderSegments } from 'svc-gateway/plugin'
import { join } from 'node:path'

export interface EngineHome {
  /** Folder of the engine's data on this host: models, output, input, user. */
  readonly dataRoot: string
  /** Folder of the engine in its image. */
  readonly appDir: string
  /** Python of engines that run as processes, and ComfyUI's main.py; without it there are only containers. */
  readonly python: string
  readonly main: string | undefined
}

/** Folders of the engine that outlive its container. Its custom nodes come with the image and stay there. */
export const dataFolders = ['models', 'output', 'input', 'user'] as const

/** What it looks for below `--base-directory` besides them, and does not start without. */
export const baseFolders = [...dataFolders, 'custom_nodes', 'temp'] as const

export const comfyFlags: FlagGrammar = { managed: ['listen', 'port', 'base-directory', 'tls-keyfile', 'tls-certfile'], abbreviates: true }

/** Room for the tensors that its workers share. */
const SHM_BYTES = 8 * 1024 ** 3

/** Pure. */
export function argvSegments ({ bindHost, port, device }: LaunchInput): ProviderSegments {
  return { base: ['--listen', bindHost, '--port', String(port), ...(device === 'cpu' ? ['--cpu'] : [])] }
}

/** Pure. */
export function containerSpec ({ argv }: LaunchSpecInput, { dataRoot, appDir }: EngineHome): ProviderContainerSpec {
  return {
    entrypoint: ['python', 'main.py'],
    command: argv,
    workingDir: appDir,
    mounts: dataFolders.map(folder => ({ source: join(dataRoot, folder), target: join(appDir, folder), readOnly: false })),
    shmSizeBytes: SHM_BYTES
  }
}

/** Pure. */
export function processCandidates ({ argv }: LaunchSpecInput, { dataRoot, python, main }: EngineHome): ProcessCandidate[] {
  if (main === undefined) return []
  return [{ command: python, args: [main, '--base-directory', dataRoot, ...argv], label: 'comfyui', requiresFiles: [main] }]
}
