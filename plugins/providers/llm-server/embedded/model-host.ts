import { availableParallelism } from 'node:os'
import { pathToFileURL } from 'node:url'
import type * as NodeLlamaCpp from 'node-llama-cpp'
import type { Llama, LlamaModel, LlamaModelOptions } from 'node-llama-cpp'
import { poolings, type EngineArgs, type Pooling } from './args.js'
import { withoutTrial } from './library/binary-trial.js'
import type { EngineLog } from './log.js'

/** The library, loaded late: importing it takes longer than binding the port. */
export type LlamaModule = typeof NodeLlamaCpp

export interface ModelHost {
  readonly module: LlamaModule
  readonly llama: Llama
  readonly model: LlamaModel
  readonly threads: number
  /** Tokens; what `--ctx-size` says, or what the model was trained with. */
  readonly contextSize: number
  /** How the token vectors of an input become one; null when neither file nor command line say. */
  readonly pooling: Pooling | null
}

/** What a slot of a GPU says where no number was chosen. */
const ALL_LAYERS = 999

/** Below this size more threads only wait for each other. Bytes. */
const SMALL_MODEL_BYTES = 64 * 1024 * 1024

/** What the process that starts the engine says beside its command line. */
export interface HostLibrary {
  /** Absolute path of the library's entry; null takes the one that is installed with the gateway. */
  readonly path: string | null
  readonly gpu: 'cuda' | 'vulkan' | null
}

/** Loads the library, and the model on the CPU or the GPU of the library's build. Rejects with the library's own words. */
export async function loadModel (args: EngineArgs, { path, gpu }: HostLibrary, log: EngineLog): Promise<ModelHost> {
  const module = await (path === null ? import('node-llama-cpp') : import(pathToFileURL(path).href) as Promise<LlamaModule>)
  const load = (): Promise<Llama> => module.getLlama({
    gpu: gpu ?? false,
    build: 'never',
    skipDownload: true,
    progressLogs: false,
    maxThreads: 0, // no limit: every context gets its own number below
    logLevel: module.LlamaLogLevel.warn,
    logger: (_level, message) => log.warn(`llama.cpp: ${message.trim()}`)
  })
  const llama = gpu === null
    ? await withoutTrial(await module.getModuleVersion(), load)
    : await load().catch((error: unknown) => {
        throw new Error(`the ${gpu} build of the engine finds no usable GPU`, { cause: error })
      })
  const info = await module.readGgufFileInfo(args.model, { sourceType: 'filesystem', readTensorInfo: false, logWarnings: false })
  // a file that is cut off behind its first bytes has none, whatever the library's types say
  const { general } = info.metadata as { readonly general?: { readonly architecture: string } }
  if (general === undefined) throw new Error('the file is not a GGUF model, or its header is truncated')
  const { architecture } = general
  const model = await llama.loadModel({
    modelPath: args.model,
    // more layers than any model has is llama-server's word for all; the library puts as many there as the GPU has room for
    ...gpu === null ? {} : { gpuLayers: args.gpuLayers === null || args.gpuLayers >= ALL_LAYERS ? 'auto' : args.gpuLayers },
    ...args.pooling === null ? {} : { metadataOverrides: poolingOverride(architecture, args.pooling) }
  })
  return {
    module,
    llama,
    model,
    threads: threadCount({
      asked: args.threads, cores: Math.min(availableParallelism(), llama.cpuMathCores), modelBytes: model.size
    }),
    contextSize: args.contextSize === 0 ? model.trainContextSize : args.contextSize,
    pooling: args.pooling ?? declaredPooling(info.architectureMetadata)
  }
}

/**
 * `--threads` counts as an upper bound: more threads than cores make llama.cpp's spinning barriers a hundred times
 * slower, and profiles name numbers meant for other machines. Pure.
 */
export function threadCount (
  facts: { readonly asked: number | null, readonly cores: number, readonly modelBytes: number }
): number {
  if (facts.modelBytes < SMALL_MODEL_BYTES) return 1
  return Math.max(1, Math.min(facts.asked ?? facts.cores, facts.cores))
}

/** Contexts take their pooling from the model's metadata, so the command line's goes in there. */
function poolingOverride (architecture: string, pooling: Pooling): NonNullable<LlamaModelOptions['metadataOverrides']> {
  return { [architecture]: { pooling_type: poolings.indexOf(pooling) } }
}

function declaredPooling (metadata: object): Pooling | null {
  const type: unknown = Reflect.get(metadata, 'pooling_type')
  return typeof type === 'number' ? poolings[type] ?? null : null
}
