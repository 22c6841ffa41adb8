import { z } from 'zod'

/** A call of a tool, as a model words it; `arguments` is JSON that the model wrote. */
export interface ToolCall {
  readonly id: string
  readonly type: 'function'
  readonly function: { readonly name: string, readonly arguments: string }
}

const toolCallSchema = z.looseObject({
  id: z.string().nullish(),
  function: z.looseObject({ name: z.string(), arguments: z.union([z.string(), z.looseObject({})]).nullish() })
})

export const messageSchema = z.looseObject({
  role: z.string().optional(),
  content: z.unknown(),
  tool_calls: z.array(toolCallSchema).nullish()
})

const completionSchema = z.looseObject({ choices: z.array(z.looseObject({ message: messageSchema })).min(1) })
export type Completion = z.output<typeof completionSchema>
export type Message = z.output<typeof messageSchema>

/** Null for what is no chat completion. */
export function completionOf (bytes: Buffer): Completion | null {
  try {
    return completionSchema.parse(JSON.parse(bytes.toString('utf8')))
  } catch {
    return null
  }
}

/** The text of a completion's first choice. Throws when it is no completion. */
export function contentOf (answer: unknown): string {
  const { content } = completionSchema.parse(answer).choices[0]!.message
  return typeof content === 'string' ? content : ''
}

/** The calls of a message, each with an id and with its arguments as text. */
export function toolCallsOf ({ tool_calls: calls }: Pick<Message, 'tool_calls'>, round: number): ToolCall[] {
  return (calls ?? []).map(({ id, function: { name, arguments: args } }, i) => ({
    id: id == null || id === '' ? `call_${round}_${i}` : id,
    type: 'function',
    function: { name, arguments: typeof args === 'string' ? args : JSON.stringify(args ?? {}) }
  }))
}
