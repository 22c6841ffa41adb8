import { createHash } from 'node:crypto'

const DIMENSIONS = 768

/** Texts that share words have vectors that are close; of length one, as embedding models have them. */
export function vectorOf (text: string): number[] {
  const vector = new Array<number>(DIMENSIONS).fill(0)
  for (const word of text.toLowerCase().match(/\p{L}+/gu) ?? ['']) {
    const digest = createHash('sha256').update(word).digest()
    for (let i = 0; i < 8; i++) vector[digest.readUInt16LE(i * 2) % DIMENSIONS]! += digest[16 + i]! % 2 === 0 ? 1 : -1
  }
  const length = Math.hypot(...vector)
  return vector.map(value => Math.fround(value / length))
}

interface Message { readonly role?: string, readonly content?: unknown }

/** It says back what it was told last, piece by piece. */
export function replyTo (messages: readonly Message[]): string[] {
  const last = [...messages].reverse().find(({ role }) => role === 'user')?.content
  const text = typeof last === 'string'
    ? last
    : Array.isArray(last) ? last.map(part => (part as { text?: string }).text ?? '').join('') : ''
  return `You said: ${text}`.split(/(?<= )/)
}

/** Seconds, spent in answering. */
export function usageOf (promptTokens: number, tokens: number, contextLength: number): object {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: tokens,
    total_tokens: promptTokens + tokens,
    kv_token_occupancy_rate_percentage: (promptTokens + tokens) / contextLength * 100,
    load_duration: 0.00001,
    prefill_duration_ttft: 0.05,
    decoding_duration: tokens / 60,
    prefill_speed_tps: promptTokens / 0.05,
    decoding_speed_tps: 60
  }
}
