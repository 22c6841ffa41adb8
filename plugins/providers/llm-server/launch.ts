import { svcError, type LaunchSpecInput, type ProcessCandidate, type ProviderContainerSpec } from 'svc-gateway/plugin'

export const engineChoices = ['auto', 'binary', 'embedded'] as const

export interface EngineChoice {
  /** Absolute path or command name of llama-server that is tried first. */
  readonly binary?: string | undefined
  /** `auto`: llama-server, else the embedded engine. `binary`: llama-server only. `embedded`: on CPU slots nothing else. */
  readonly prefer: typeof engineChoices[number]
}

export interface EmbeddedEngine {
  /** Absolute path of the engine program. */
  readonly main: string
  /** File that exists when node-llama-cpp is installed. */
  readonly marker: string
}

/** llama.cpp's images have the server as their entrypoint, so the command is its arguments. Pure. */
export function containerSpec (input: LaunchSpecInput): ProviderContainerSpec {
  assertModel(input)
  return { command: input.argv }
}

/** Ways to run without a container. The embedded engine computes on the CPU, so only CPU slots get it. Pure. */
export function processCandidates (input: LaunchSpecInput, choice: EngineChoice, embedded: EmbeddedEngine): ProcessCandidate[] {
  assertModel(input)
  const binaries = [choice.binary, 'llama-server'].filter((command, i, all) => command !== undefined && all.indexOf(command) === i)
    .map(command => ({ command: command!, args: input.argv, label: 'llama-server' }))
  if (input.device !== 'cpu' || choice.prefer === 'binary') return binaries
  const inProcess: ProcessCandidate = {
    command: 'node', args: [embedded.main, ...input.argv], label: 'embedded', requiresFiles: [embedded.main, embedded.marker]
  }
  return choice.prefer === 'embedded' ? [inProcess] : [...binaries, inProcess]
}

/** Without a model llama-server would start as a router for many models, and look healthy. */
function assertModel (input: LaunchSpecInput): void {
  if (input.model !== null) return
  throw svcError('slot.config_error', `slot '${input.slot.name}' has no model: pick one with \`svc model assign\``,
    { details: { slot: input.slot.name } })
}
