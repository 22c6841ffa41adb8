export interface ChatMessage {
  readonly role: 'system' | 'user' | 'assistant'
  readonly content: string
}

export interface ChatAsk {
  readonly messages: readonly ChatMessage[]
  readonly maxTokens: number
  /** Whether the answer must be a JSON object; with a schema: this one. */
  readonly json?: true | Readonly<Record<string, unknown>>
}

export interface ChatAnswer {
  readonly text: string
  readonly model: string
  readonly inputTokens: number
  readonly outputTokens: number
}

/** What a call is made for. */
export interface Purpose {
  /** The bank's number. */
  readonly bank: number
  readonly operation: 'retain' | 'consolidation' | 'reflect' | 'refresh_mental_model'
  readonly scope: string
  /** Calls of one piece of work have the same. */
  readonly traceId: string | null
}

export interface Usage {
  readonly inputTokens: number
  readonly outputTokens: number
}

export const noUsage: Usage = { inputTokens: 0, outputTokens: 0 }

export function addUsage (a: Usage, b: Usage): Usage {
  return { inputTokens: a.inputTokens + b.inputTokens, outputTokens: a.outputTokens + b.outputTokens }
}

/** `TokenUsage` of the wire. Pure. */
export function usageView ({ inputTokens, outputTokens }: Usage): Record<string, number> {
  return {
    input_tokens: inputTokens, output_tokens: outputTokens, total_tokens: inputTokens + outputTokens, cached_tokens: 0,
    thoughts_tokens: 0
  }
}
