import type { Model, ModelCapability } from '../../../kernel/contract/index.js'

/** Folders of the canonical layout, below the models' root. */
export const leaves = [
  'llamacpp/chat', 'llamacpp/embed', 'llamacpp/rerank', 'flm/chat', 'flm/embed', 'whispercpp/stt', 'whispercpp/moonshine', 'kokoro/tts', 'sd-cpp/img',
  'collections/omni'
] as const
export type Leaf = typeof leaves[number]

export interface Classified {
  readonly leaf: Leaf | null
  /** Where that is known from. */
  readonly reason: string
}

/** Strongest first: a model that can do several things is kept for the rarest. */
const order: readonly ModelCapability[] = ['rerank', 'embed', 'asr', 'tts', 'image', 'chat', 'vision']

const npuBackends: ReadonlySet<string> = new Set(['flm', 'npu', 'npu-rt'])

/** What older installations called their folders. */
const folders: Readonly<Record<string, Leaf>> = {
  'flm-ubuntu': 'flm/chat', 'moonshine_voice': 'whispercpp/moonshine', 'voices': 'kokoro/tts', 'comfyui': 'sd-cpp/img'
}

/** By the registry, else by the names of the folders that it lies in, outermost first. Pure. */
export function classify (relativePath: string, model: Model | undefined): Classified {
  if (model !== undefined) {
    const leaf = leafOf(model)
    return leaf === null ? { leaf, reason: 'the registry does not say what it is for' } : { leaf, reason: `registered as ${model.id}` }
  }
  const parts = relativePath.split('/').slice(0, -1)
  const folder = parts.find(part => Object.hasOwn(folders, part))
  return folder === undefined ? { leaf: null, reason: 'neither registered nor in a known folder' } : { leaf: folders[folder]!, reason: `in folder ${folder}` }
}

/** The strongest capability says what it is for, the first backend that is known what runs it; the NPU wins. */
function leafOf ({ capabilities, backends, tags }: Model): Leaf | null {
  if (tags.includes('omni')) return 'collections/omni'
  const strongest = order.find(capability => capabilities.includes(capability))
  if (strongest === undefined) return null
  const onNpu = backends.some(backend => npuBackends.has(backend))
  switch (strongest) {
    case 'rerank': return 'llamacpp/rerank'
    case 'embed': return onNpu ? 'flm/embed' : 'llamacpp/embed'
    case 'asr': return backends.find(backend => ['moonshine', 'whispercpp'].includes(backend)) === 'moonshine' ? 'whispercpp/moonshine' : 'whispercpp/stt'
    case 'tts': return 'kokoro/tts'
    case 'image': return 'sd-cpp/img'
    default: return onNpu ? 'flm/chat' : 'llamacpp/chat'
  }
}
