import type { ModelCapability, SlotType } from 'svc-gateway/plugin'
import type { CapabilityChild } from '../../services/capabilities/ref.js'

/** What models and engines have to be for a use. */
export interface Use {
  /** Type of the slots. */
  readonly type: SlotType
  /** Tag of the models. */
  readonly capability: ModelCapability
}

export interface ChildKind extends Use {
  /** Slots that serve it, the usual name first; an older name counts where only that exists. */
  readonly slots: readonly [string, ...string[]]
  /** Key of an NPU anchor's `[npu]` table that switches it on; null for what the NPU does not do. */
  readonly npuToggle: 'asr' | 'embed' | null
}

/** What each child of a capability is made of. */
export const childKinds: Readonly<Record<CapabilityChild, ChildKind>> = {
  embed: { slots: ['embed'], type: 'embedding', capability: 'embed', npuToggle: 'embed' },
  rerank: { slots: ['rerank', 'embed-rerank'], type: 'reranking', capability: 'rerank', npuToggle: null },
  stt: { slots: ['stt'], type: 'transcription', capability: 'asr', npuToggle: 'asr' },
  tts: { slots: ['tts'], type: 'tts', capability: 'tts', npuToggle: null },
  img: { slots: ['img'], type: 'image', capability: 'image', npuToggle: null },
  vision: { slots: ['vision'], type: 'llm', capability: 'vision', npuToggle: null }
}

/** Not part of the overlay: what an NPU card offers for the anchor itself. */
export const chatUse: Use = { type: 'llm', capability: 'chat' }

export function backingSlot (child: CapabilityChild, slots: { has (name: string): boolean }): string {
  const [usual, ...older] = childKinds[child].slots
  return slots.has(usual) ? usual : older.find(name => slots.has(name)) ?? usual
}
