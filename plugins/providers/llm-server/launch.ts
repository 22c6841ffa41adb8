import { svcError, type AbilityInput, type LaunchSpecInput, type ProcessCandidate, type ProviderContainerSpec } from 'svc-gateway/plugin'
import { buildFor, buildIn, EMBEDDED, gpuOfDevice, libraryIn } from './ref.js'

export const engineChoices = ['auto', 'binary', 'embedded'] as const

export interface EngineChoice {
  /** Absolute path or command name of llama-server that is tried first. */
  readonly binary?: string | undefined
  /** `auto`: llama-server, else the embedded engine. `binary`: llama-server only. `embedded`: nothing else where it can run. */
  readonly prefer: typeof engineChoices[number]
}

export interface EmbeddedEngine {
  /** Absolute path of the engine program. */
  readonly main: string
  /** Entry of the library next to the gateway; may be absent. */
  readonly library: string
  /** Folder that `svc engine install embedded` installs into; may be absent. */
  readonly installed: string
}

/** llama.cpp's images have the server as their entrypoint, so the command is its arguments. Pure. */
export function containerSpec (input: LaunchSpecInput): ProviderContainerSpec {
  assertModel(input)
  return { command: input.argv }
}

/** Ways to run without a container: llama-server, then the embedded engine where it has a build for the device. Pure. */
export function processCandidates (input: LaunchSpecInput, choice: EngineChoice, embedded: EmbeddedEngine): ProcessCandidate[] {
  assertModel(input)
  const binaries = [choice.binary, 'llama-server'].filter((command, i, all) => command !== undefined && all.indexOf(command) === i)
    .map(command => ({ command: command!, args: input.argv, label: 'llama-server' }))
  if (choice.prefer === 'binary') return binaries
  const inProcess = embeddedCandidates(input, embedded)
  return choice.prefer === 'embedded' && inProcess.length > 0 ? inProcess : [...binaries, ...inProcess]
}

/** Whether a slot is one that the embedded engine runs for certain, if anything does. Pure. */
export function isEmbeddedAlone (
  { runtime, device }: Pick<AbilityInput['slot'], 'runtime' | 'device'>, { prefer }: Pick<EngineChoice, 'prefer'>, driver: string
): boolean {
  if (prefer !== 'embedded' || (runtime ?? driver) !== 'process' || device === undefined) return false
  const gpu = gpuOfDevice(device)
  return gpu !== undefined && buildFor(process.platform, process.arch, gpu) !== null
}

/** Next to the gateway there is only what computes on the CPU; what was installed for this machine may use its GPU. */
function embeddedCandidates (
  { device, argv }: LaunchSpecInput, { main, library, installed }: EmbeddedEngine
): ProcessCandidate[] {
  const gpu = gpuOfDevice(device)
  const build = gpu === undefined ? null : buildFor(process.platform, process.arch, gpu)
  if (gpu === undefined || build === null) return []
  const install = `svc engine install ${EMBEDDED}`
  const candidate = (env: Readonly<Record<string, string>>, ...files: readonly string[]): ProcessCandidate =>
    ({ command: 'node', args: [main, ...argv], env, label: EMBEDDED, requiresFiles: [main, ...files], install })
  const entry = libraryIn(installed)
  const own = { SVC_EMBEDDED_LIBRARY: entry, ...(gpu === null ? {} : { SVC_EMBEDDED_GPU: gpu }) }
  return [...(gpu === null ? [candidate({}, library)] : []), candidate(own, entry, buildIn(installed, build))]
}

/** Without a model llama-server would start as a router for many models, and look healthy. */
function assertModel (input: LaunchSpecInput): void {
  if (input.model !== null) return
  throw svcError('slot.config_error', `slot '${input.slot.name}' has no model: pick one with \`svc model assign\``,
    { details: { slot: input.slot.name } })
}
