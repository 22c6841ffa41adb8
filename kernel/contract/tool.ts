import type { z } from 'zod'
import { hasBrand, TOOL_BRAND } from './brand.js'

export interface ToolCall<I> {
  readonly input: I
  readonly actor: string
  readonly signal: AbortSignal
}

/** A tool of a tool server (`/mcp/<server>`). `gated` tools wait for an operator's approval. */
export interface ToolDefinition<S extends z.ZodObject = z.ZodObject> {
  readonly server: string
  readonly name: string
  readonly description: string
  readonly input: S
  readonly gated?: boolean
  readonly readOnly?: boolean
  readonly handler: (call: ToolCall<z.output<S>>) => Promise<unknown>
}

export function defineTool<S extends z.ZodObject> (tool: ToolDefinition<S>): ToolDefinition {
  return Object.freeze({ ...tool, [TOOL_BRAND]: true }) as unknown as ToolDefinition
}

export function isTool (value: unknown): value is ToolDefinition {
  return hasBrand(value, TOOL_BRAND)
}
