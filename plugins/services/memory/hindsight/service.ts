import { defineService, type ServiceDescriptor, type ServiceLook } from 'svc-gateway/plugin'
import type { MemoryService } from '../ref.js'
import { hindsightEnv, hindsightImage, hindsightPython } from './program.js'

/** The prompt of one sentence is 3,200 tokens, that of a reflection up to 13,000. */
const LEAST_CONTEXT = 16_384

/** The slot that serves language models, and the tokens that it has; null where its file has no number. */
export interface LlmSlot {
  readonly name: string
  readonly contextSize: number | null
}

/**
 * A Hindsight server as `/api/services` shows it: the one that the memory uses, wherever that runs, else one on this machine.
 * @param llmSlot that which a server of this gateway asks; null without one
 */
export function hindsightService (
  memory: Pick<MemoryService, 'health' | 'status'>, urlOf: () => string, llmSlot: () => LlmSlot | null
): ServiceDescriptor {
  const isUsed = (): boolean => memory.health.engine === 'hindsight'
  const look = async (): Promise<ServiceLook | null> => {
    const status = isUsed() ? await memory.status() : null
    if (status === null) return null
    const { reachable, degraded, version, banks } = status
    return {
      up: reachable && !degraded,
      detail: status.detail ?? `${urlOf()} answers${version === null ? '' : ` as version ${version}`}`,
      stat: banks === null ? null : { label: 'banks', value: banks }
    }
  }
  const hints = (): readonly string[] => {
    const { enabled } = memory.health
    // PostgreSQL does not start for root
    const root = process.getuid?.() === 0
      ? ['the gateway runs as root, for which its database does not start: set one in HINDSIGHT_API_DATABASE_URL, in [plugins.config.api-services.services.hindsight] env']
      : []
    const narrow = narrowOf(llmSlot())
    if (isUsed()) return [`the memory of this gateway is kept there: [memory] url is ${urlOf()}`, ...narrow, ...root]
    return [enabled
      ? 'the memory of this gateway is the embedded engine, which runs within it and needs no server: svc memory status'
      : 'the memory of this gateway is off: svc memory enable', ...narrow, ...root]
  }
  return defineService({
    id: 'hindsight',
    name: 'Hindsight',
    description: 'The memory engine of agents',
    licence: {
      name: 'MIT', note: null, url: 'https://github.com/vectorize-io/hindsight/blob/main/LICENSE'
    },
    unit: 'hindsight-api.service',
    port: 9177,
    verbs: ['start', 'stop', 'restart', 'enable', 'disable'],
    probe: '/health',
    page: null,
    mdns: false,
    loopback: true,
    look,
    hints,
    needs: ['embedding'],
    python: hindsightPython,
    container: hindsightImage,
    env: hindsightEnv
  })
}

/** A server that is told that a context is too small asks again all the same, and then answers 500. */
function narrowOf (slot: LlmSlot | null): readonly string[] {
  if (slot === null || slot.contextSize === null || slot.contextSize >= LEAST_CONTEXT) return []
  const { name, contextSize } = slot
  return [`its language model is slot ${name} with context_size = ${contextSize}, which is too small for its requests: svc slot edit ${name} --ctx-size ${LEAST_CONTEXT}`]
}
