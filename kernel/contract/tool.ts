import type { z } from 'zod'
import { hasBrand, TOOL_BRAND } from './brand.js'

/** Names of tools, of their arguments' servers too: clients put a prefix before them, and models take 64 characters in all. */
export const TOOL_NAME_PATTERN = /^[a-z0-9_]{1,48}$/
/** A server's name is a segment of `/mcp/<server>`. */
export const TOOL_SERVER_PATTERN = /^[a-z0-9][a-z0-9_-]{0,63}$/

/** Hints for the host of a model, which decides by them what it asks its user. They are not binding. */
export interface ToolAnnotations {
  /** Changes nothing. */
  readonly readOnly?: boolean
  /** May undo or remove something; default true for a tool that is not read-only. */
  readonly destructive?: boolean
  /** A second call with the same arguments changes nothing more. */
  readonly idempotent?: boolean
  /** Reaches beyond this machine. */
  readonly openWorld?: boolean
}

export interface ToolCall<I> {
  readonly input: I
  /** For audit rows: `mcp:<agent>`. */
  readonly actor: string
  /** The agent's own name, null when it gave none. */
  readonly agent: string | null
  /** What is written is for this agent alone (`X-svc-Private`). */
  readonly private: boolean
  /** Aborts when the client is gone or cancels the call. */
  readonly signal: AbortSignal
  /** Sign of life for clients that asked for it. `done` and `total` in any unit. Never throws. */
  readonly progress: (message: string, done?: number, total?: number) => void
}

/** What routes and tools without a route say of themselves alike. */
export interface ToolWords extends ToolAnnotations {
  /** Letters a to z, digits and `_`, at most 48; one tool of a server has it. */
  readonly name: string
  readonly title?: string
  /** Waits for an operator's approval. */
  readonly gated?: boolean
  /** Argument that says what the call is about: while one call waits for approval, others with the same value join it. */
  readonly primary?: string
  /** Arguments whose values are shown nowhere: not in events, audit rows or approvals. */
  readonly secrets?: readonly string[]
  /** Arguments left out of events and audit rows, which any caller can read. An operator sees them until the call is decided. */
  readonly unwritten?: readonly string[]
}

/** A tool of a tool server (`/mcp/<server>`) that has no route. What the handler throws is told to the client. */
export interface ToolDefinition<S extends z.ZodObject = z.ZodObject> extends ToolWords {
  readonly server: string
  /** For a model: what it does, and when to call it. */
  readonly description: string
  readonly input: S
  /** Shape of the result, where clients should get it as data as well. Not for gated tools. */
  readonly output?: z.ZodObject
  /** False while it is of no use: it is then not listed, and answers by itself why. Its server's `onChange` tells a change. */
  readonly isOffered?: () => boolean
  /** Which calls of a tool that is not gated wait for an operator's approval all the same. Pure. */
  readonly gatedWhen?: (input: z.output<S>) => boolean
  readonly handler: (call: ToolCall<z.output<S>>) => Promise<unknown>
}

/**
 * The tool that a route is: its arguments are the route's path parameters, query and body side by side, and a call runs
 * the route's own handler in process, with the validation, the audit rows and the errors of the route.
 */
export interface RouteTool extends ToolWords {
  /** Default `admin`. */
  readonly server?: string
  /** For a model: what it does, and when to call it. Default: the route's summary. */
  readonly description?: string
  /** Other names of arguments, by the keys of the route: `{ id: 'model_id' }`. */
  readonly rename?: Readonly<Record<string, string>>
  /** Arguments that are listed, where the route takes more than a model should have to read. The others are taken too. */
  readonly show?: readonly string[]
  /** Arguments that are tables are listed without their keys: the description says where those are told. */
  readonly brief?: boolean
  /** The part of the answer that a model needs: short rows of lists. */
  readonly short?: (answer: never) => unknown
  /** What makes a long answer shorter, after "n more": `narrow it with 'search'`. */
  readonly narrow?: string
}

export function defineTool<S extends z.ZodObject> (tool: ToolDefinition<S>): ToolDefinition {
  return Object.freeze({ ...tool, [TOOL_BRAND]: true }) as unknown as ToolDefinition
}

export function isTool (value: unknown): value is ToolDefinition {
  return hasBrand(value, TOOL_BRAND)
}
