import type { ToolEntry } from 'svc-gateway/plugin'

export interface ListedTools {
  readonly tools: readonly object[]
  /** The list as JSON. */
  readonly json: string
}

/** Lists are the same arrays as long as nothing changes, so each is written once. */
const written = new WeakMap<readonly ToolEntry[], ListedTools>()

export function listedTools (entries: readonly ToolEntry[]): ListedTools {
  let listed = written.get(entries)
  if (listed === undefined) {
    const tools = entries.map(listedTool)
    listed = { tools, json: JSON.stringify(tools) }
    written.set(entries, listed)
  }
  return listed
}

function listedTool ({ name, title, description, inputSchema, outputSchema, gated, annotations }: ToolEntry): object {
  const { readOnly, destructive, idempotent, openWorld } = annotations
  const hints = {
    ...(title === null ? {} : { title }),
    ...(readOnly === undefined ? {} : { readOnlyHint: readOnly }),
    ...(destructive === undefined ? {} : { destructiveHint: destructive }),
    ...(idempotent === undefined ? {} : { idempotentHint: idempotent }),
    ...(openWorld === undefined ? {} : { openWorldHint: openWorld })
  }
  return {
    name,
    ...(title === null ? {} : { title }),
    description,
    inputSchema,
    // of a gated tool, the result is that it waits
    ...(outputSchema === null || gated ? {} : { outputSchema }),
    ...(Object.keys(hints).length === 0 ? {} : { annotations: hints })
  }
}
