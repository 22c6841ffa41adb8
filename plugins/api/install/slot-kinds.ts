import type { SlotType } from 'svc-gateway/plugin'
import type { CapabilityChild } from '../../services/capabilities/ref.js'

/** What a first run makes a slot for. */
export const slotKindNames = ['chat.primary', 'chat.coder', 'embed', 'stt', 'tts', 'rerank', 'vision', 'img', 'npu'] as const
export type SlotKindName = typeof slotKindNames[number]

export interface SlotKind {
  readonly slot: string
  readonly type: SlotType
  /** The capability that it serves; null for chat. */
  readonly child: CapabilityChild | null
}

export const slotKinds: Readonly<Record<SlotKindName, SlotKind>> = {
  'chat.primary': { slot: 'agent', type: 'llm', child: null },
  'chat.coder': { slot: 'coder', type: 'llm', child: null },
  'embed': { slot: 'embed', type: 'embedding', child: 'embed' },
  'stt': { slot: 'stt', type: 'transcription', child: 'stt' },
  'tts': { slot: 'tts', type: 'tts', child: 'tts' },
  'rerank': { slot: 'rerank', type: 'reranking', child: 'rerank' },
  'vision': { slot: 'vision', type: 'llm', child: 'vision' },
  'img': { slot: 'img', type: 'image', child: 'img' },
  'npu': { slot: 'npu', type: 'llm', child: null }
}

/** Any of them is the slot that chats by default. */
export const mainSlots: readonly string[] = ['agent', 'chat', 'primary']
