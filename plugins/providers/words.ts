import { words as imagegen } from './imagegen/words.js'
import { words as llmServer } from './llm-server/words.js'
import { words as npuRt } from './npu-rt/words.js'
import { words as sttEngine } from './stt-engine/words.js'
import { words as ttsCpu } from './tts-cpu/words.js'
import { words as ttsGpu } from './tts-gpu/words.js'

/** What the command line says of a provider that ships with the gateway, without loading it. */
export interface ProviderWords {
  readonly name: string
  /** Whether `--provider` may name it; false: it comes by type and device alone. A text says why it need not be named. */
  readonly isNamed: boolean | string
}

export const providerWords: readonly ProviderWords[] = [llmServer, npuRt, sttEngine, ttsCpu, ttsGpu, imagegen]
