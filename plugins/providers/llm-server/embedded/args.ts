import { parseFlags, type Flag } from '../flags.js'

export const poolings = ['none', 'mean', 'cls', 'last', 'rank'] as const
export type Pooling = typeof poolings[number]

/** What the engine serves: text, or one vector per input, or one score per document. */
export type EngineMode = 'text' | 'embedding' | 'reranking'

/** Defaults of the sampler, as llama-server has them; a request overrides each. */
export const samplingDefaults = {
  'temperature': 0.8, 'top-k': 40, 'top-p': 0.95, 'min-p': 0.05, 'seed': -1, 'predict': -1,
  'repeat-last-n': 64, 'repeat-penalty': 1, 'presence-penalty': 0, 'frequency-penalty': 0
} as const
export type SamplingDefaults = Readonly<Record<keyof typeof samplingDefaults, number>>

export interface EngineArgs {
  readonly model: string
  readonly host: string
  readonly port: number
  readonly alias: string
  /** Tokens of all slots together, or of each when `kvUnified`; 0 takes what the model was trained with. */
  readonly contextSize: number
  readonly mode: EngineMode
  readonly parallel: number
  readonly kvUnified: boolean
  /** Keep going by forgetting the oldest tokens when the context is full. */
  readonly contextShift: boolean
  readonly pooling: Pooling | null
  /** Largest input in embedding and reranking modes, in tokens; null takes the context size. */
  readonly physicalBatch: number | null
  readonly threads: number | null
  /** Null leaves it to the library, as words such as `all` do. */
  readonly gpuLayers: number | null
  readonly chatTemplateFile: string | null
  readonly sampling: SamplingDefaults
}

export interface ParsedArgs {
  readonly args: EngineArgs
  /** Flags of llama-server that this engine takes and does nothing with, as they were spelled. */
  readonly ignored: readonly string[]
}

const understood = new Set([
  'model', 'host', 'port', 'alias', 'ctx-size', 'embedding', 'reranking', 'parallel', 'kv-unified', 'context-shift', 'pooling',
  'ubatch-size', 'threads', 'chat-template-file', 'jinja', 'metrics', 'device', 'n-gpu-layers', ...Object.keys(samplingDefaults)
])

/**
 * Reads a llama-server command line; the last occurrence of a flag counts. Pure.
 *
 * @throws RangeError with a sentence for the operator.
 */
export function parseEngineArgs (argv: readonly string[]): ParsedArgs {
  const all = parseFlags(argv)
  const flags = new Map(all.map(flag => [flag.name, flag]))
  const text = (name: string): string | null => flags.get(name)?.values[0] ?? null
  const number = (name: string, fallback: number, min: number): number => integerOf(flags.get(name), min) ?? fallback

  const model = text('model')
  if (model === null) throw new RangeError('--model PATH is missing')
  if (flags.has('embedding') && flags.has('reranking')) {
    throw new RangeError('--embedding and --reranking exclude each other; start two engines')
  }
  return {
    args: {
      model,
      host: text('host') ?? '127.0.0.1',
      port: number('port', 8080, 0),
      alias: text('alias') ?? model,
      contextSize: number('ctx-size', 0, 0),
      mode: flags.has('reranking') ? 'reranking' : flags.has('embedding') ? 'embedding' : 'text',
      parallel: Math.max(1, number('parallel', 1, -1)),
      kvUnified: isOn(flags.get('kv-unified')),
      contextShift: isOn(flags.get('context-shift')),
      pooling: poolingOf(text('pooling')),
      physicalBatch: flags.has('ubatch-size') ? number('ubatch-size', 512, 1) : null,
      threads: flags.has('threads') ? number('threads', 1, 1) : null,
      gpuLayers: layersOf(text('n-gpu-layers')),
      chatTemplateFile: text('chat-template-file'),
      sampling: samplingOf(flags)
    },
    ignored: all.filter(flag => !understood.has(flag.name)).map(flag => flag.spelling)
  }
}

function samplingOf (flags: ReadonlyMap<string, Flag>): SamplingDefaults {
  const entries = Object.entries(samplingDefaults).map(([name, fallback]) => {
    const flag = flags.get(name)
    return [name, flag === undefined ? fallback : numberOf(flag)]
  })
  return Object.fromEntries(entries) as SamplingDefaults
}

function isOn (flag: Flag | undefined): boolean {
  return flag !== undefined && !/^-+no-/.test(flag.spelling)
}

function integerOf (flag: Flag | undefined, min: number): number | null {
  if (flag === undefined) return null
  const value = numberOf(flag)
  if (!Number.isInteger(value) || value < min) throw new RangeError(`${flag.spelling} must be a whole number of at least ${min}`)
  return value
}

function numberOf (flag: Flag): number {
  const value = Number(flag.values[0] ?? NaN)
  if (!Number.isFinite(value)) throw new RangeError(`${flag.spelling} must be a number`)
  return value
}

function poolingOf (value: string | null): Pooling | null {
  if (value === null) return null
  const pooling = poolings.find(name => name === value)
  if (pooling === undefined) throw new RangeError(`--pooling must be one of ${poolings.join(', ')}`)
  return pooling
}

function layersOf (text: string | null): number | null {
  return text !== null && /^\d+$/.test(text) ? Number(text) : null
}
