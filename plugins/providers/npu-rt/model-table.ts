import type { ModelCapability } from 'svc-gateway/plugin'

export interface TableModel {
  /** As the engine spells it: `family:size`. */
  readonly tag: string
  /** Its folder in the engine's store. */
  readonly folder: string
  /** Bytes to fetch, as the engine's makers count. */
  readonly sizeBytes: number
  /** Context window in tokens. */
  readonly contextSize: number
  readonly capabilities: readonly ModelCapability[]
}

const GB = 1_000_000_000

type Row = readonly [size: string, folder: string, gigabytes: number, contextSize: number, vision?: 'vision']

/** What FastFlowLM 1.0 can fetch (its model_list.json). */
const chat: Readonly<Record<string, readonly Row[]>> = {
  'deepseek-r1': [['8b', 'Deepseek-R1-Distill-Llama-8B-NPU2', 8, 16_384]],
  'deepseek-r1-0528': [['8b', 'DeepSeek-R1-0528-Qwen3-8B-NPU2', 8, 16_384]],
  'gemma3': [['1b', 'Gemma3-1B-NPU2', 1, 32_768], ['4b', 'Gemma3-4B-NPU2', 4, 65_536, 'vision']],
  'gemma4-it': [
    ['e2b', 'Gemma4-E2B-IT-NPU2', 2, 32_768, 'vision'], ['e4b', 'Gemma4-E4B-IT-NPU2', 4, 32_768, 'vision'],
    ['12b', 'Gemma4-12B-IT-NPU2', 12, 32_768, 'vision']
  ],
  'gpt-oss': [['20b', 'GPT-OSS-20B-NPU2', 20, 8192]],
  'gpt-oss-sg': [['20b', 'GPT-OSS-Safeguard-20b-NPU2', 20, 8192]],
  'hy-mt2': [['1.8b', 'Hy-MT2-1.8B-NPU2', 1.8, 512]],
  'lfm2': [['1.2b', 'LFM2-1.2B-NPU2', 1.2, 32_768], ['2.6b', 'LFM2-2.6B-NPU2', 2.6, 32_768]],
  'lfm2-trans': [['2.6b', 'LFM2-2.6B-Transcript-NPU2', 2.6, 32_768]],
  'lfm2.5-it': [['1.2b', 'LFM2.5-1.2B-NPU2', 1.2, 32_768]],
  'lfm2.5-tk': [['1.2b', 'LFM2.5-1.2B-Thinking-NPU2', 1.2, 32_768]],
  'llama3.1': [['8b', 'Llama-3.1-8B-NPU2', 8, 16_384]],
  'llama3.2': [['1b', 'Llama-3.2-1B-NPU2', 1, 131_072], ['3b', 'Llama-3.2-3B-NPU2', 3, 65_536]],
  'medgemma': [['4b', 'Medgemma-4B-NPU2', 4, 65_536, 'vision']],
  'medgemma1.5': [['4b', 'Medgemma-1.5-4B-NPU2', 4, 65_536, 'vision']],
  'nanbeige4.1': [['3b', 'Nanbeige4.1-3B-NPU2', 1, 8192]],
  'phi4-mini-it': [['4b', 'Phi4-mini-Instruct-NPU2', 4, 32_768]],
  'qwen2.5-it': [['3b', 'Qwen2.5-3B-Instruct-NPU2', 3, 32_768]],
  'qwen2.5vl-it': [['3b', 'Qwen2.5-VL-3B-Instruct-NPU2', 3, 32_768, 'vision']],
  'qwen3': [
    ['0.6b', 'Qwen3-0.6B-NPU2', 0.6, 32_768], ['1.7b', 'Qwen3-1.7B-NPU2', 1.7, 32_768], ['4b', 'Qwen3-4B-NPU2', 4, 32_768],
    ['8b', 'Qwen3-8B-NPU2', 8, 16_384]
  ],
  'qwen3-it': [['4b', 'Qwen3-4B-Instruct-2507-NPU2', 4, 32_768]],
  'qwen3-tk': [['4b', 'Qwen3-4B-Thinking-2507-NPU2', 4, 32_768]],
  'qwen3.5': [
    ['0.8b', 'Qwen3.5-0.8B-NPU2', 0.8, 32_768, 'vision'], ['2b', 'Qwen3.5-2B-NPU2', 2, 32_768, 'vision'],
    ['4b', 'Qwen3.5-4B-NPU2', 4, 32_768, 'vision'], ['9b', 'Qwen3.5-9B-NPU2', 9, 32_768, 'vision']
  ],
  'qwen3.6-moe': [['35b-a3b', 'Qwen3.6-35B-A3B-NPU2', 35, 32_768, 'vision']],
  'qwen3vl-it': [['4b', 'Qwen3-VL-4B-Instruct-NPU2', 4, 32_768, 'vision']],
  'translategemma': [['4b', 'Translategemma-4B-Instruct-NPU2', 4, 65_536, 'vision']]
}

/** The engine brings one model each for hearing and for vectors. */
export const ASR_MODEL = 'whisper-v3:turbo'
export const EMBED_MODEL = 'embed-gemma:300m'

export const tableModels: readonly TableModel[] = [
  ...Object.entries(chat).flatMap(([family, rows]) => rows.map(([size, folder, gigabytes, contextSize, vision]): TableModel => ({
    tag: `${family}:${size}`,
    folder,
    sizeBytes: gigabytes * GB,
    contextSize,
    capabilities: vision === undefined ? ['chat'] : ['chat', 'vision']
  }))),
  { tag: EMBED_MODEL, folder: 'Embedding-Gemma-300M-NPU2', sizeBytes: 0.3 * GB, contextSize: 2048, capabilities: ['embed'] },
  { tag: ASR_MODEL, folder: 'Whisper-V3-Turbo-NPU2', sizeBytes: GB, contextSize: 448, capabilities: ['asr'] }
]
