import type { Logger, ToolAnnotations, ToolCaller, ToolEntry, ToolWords } from '../contract/index.js'

export type Args = Readonly<Record<string, unknown>>

/** A tool that a plugin brings, ready to be called. */
export interface OwnTool {
  readonly entry: ToolEntry
  /** Throws a `SvcError` for arguments that do not fit. What it returns is what `run` takes. */
  readonly prepare: (args: Args) => unknown
  readonly run: (prepared: unknown, caller: ToolCaller, of: RunOf) => Promise<unknown>
  readonly isOffered?: () => boolean
  /** Whether this call waits for an approval, whatever the entry says. */
  readonly gatedWhen?: (prepared: unknown) => boolean
}

export interface RunOf {
  readonly log: Logger
  readonly requestId: string
}

/** A tool that no server offers. */
export interface ToolProblem {
  /** As `server/name`. */
  readonly tool: string
  readonly message: string
}

export function annotationsOf ({ readOnly, destructive, idempotent, openWorld }: ToolWords): ToolAnnotations {
  return {
    ...(readOnly === undefined ? {} : { readOnly }),
    ...(destructive === undefined ? {} : { destructive }),
    ...(idempotent === undefined ? {} : { idempotent }),
    ...(openWorld === undefined ? {} : { openWorld })
  }
}
