import type { CapabilityChild, SlotType } from 'svc-gateway/plugin'

/** What a first run makes a slot for (management 2.3). */
export const slotKindNames = ['chat.primary', 'chat.coder', 'embed', 'stt', 'tts', 'rerank', 'vision', 'img', 'npu'] as const
export type SlotKindName = typeof slotKindNames[number]

export interface SlotKind {
  readonly slot: string
  readonly port: number
  readonly type: SlotType
  /** The capability that it serves; null for chat. */
  readonly child: CapabilityChild | null
}

export const slotKinds: Readonly<Record<SlotKindName, SlotKind>> = {
  'chat.primary': { slot: 'agent', port: 8081, type: 'llm', child: null },
  'chat.coder': { slot: 'coder', port: 8082, type: 'llm', child: null },
  'embed': { slot: 'embed', port: 8083, type: 'embedding', child: 'embed' },
  'stt': { slot: 'stt', port: 8084, type: 'transcription', child: 'stt' },
  'tts': { slot: 'tts', port: 8085, type: 'tts', child: 'tts' },
  'rerank': { slot: 'rerank', port: 8086, type: 'reranking', child: 'rerank' },
  'vision': { slot: 'vision', port: 8087, type: 'llm', child: 'vision' },
  'img': { slot: 'img', port: 8188, type: 'image', child: 'img' },
  'npu': { slot: 'npu', port: 8088, type: 'llm', child: null }
}

/** Any of them is the slot that chats by default. */
export const mainSlots: readonly string[] = ['agent', 'chat', 'primary']
