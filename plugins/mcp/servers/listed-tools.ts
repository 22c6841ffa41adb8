import type { ToolEntry } from 'svc-gateway/plugin'

/** Lists are the same arrays as long as nothing changes, so each is written once. */
const written = new WeakMap<readonly ToolEntry[], string>()

/** The list as JSON. */
export function listedTools (entries: readonly ToolEntry[]): string {
  let json = written.get(entries)
  if (json === undefined) {
    json = JSON.stringify(entries.map(listedTool))
    written.set(entries, json)
  }
  return json
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
