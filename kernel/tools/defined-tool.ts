import type { ToolDefinition } from '../contract/index.js'
import { checkPart } from '../http/openapi/route-input.js'
import { annotationsOf, type OwnTool } from './own-tool.js'
import { objectSchema } from './tool-schema.js'

/** A tool without a route. Throws where its schemas cannot be told to clients. */
export function definedTool (tool: ToolDefinition, owner: string): OwnTool {
  const { server, name, description, gated = false, input, output } = tool
  // a gated tool answers that it waits, which is not its output
  const outputSchema = output === undefined || gated ? null : objectSchema(output, 'output')
  return {
    entry: Object.freeze({
      server,
      name,
      title: tool.title ?? null,
      description,
      inputSchema: objectSchema(input, 'input'),
      outputSchema,
      gated,
      primary: tool.primary ?? null,
      secrets: tool.secrets ?? [],
      ...tool.unwritten === undefined ? {} : { unwritten: tool.unwritten },
      annotations: annotationsOf(tool),
      owner
    }),
    prepare: args => checkPart(input, args, `the arguments of ${name}`),
    ...tool.isOffered === undefined ? {} : { isOffered: tool.isOffered },
    ...tool.gatedWhen === undefined ? {} : { gatedWhen: prepared => tool.gatedWhen!(prepared as never) },
    run: (prepared, { actor, agent, private: isPrivate = false, signal, progress = () => {} }) =>
      tool.handler({ input: prepared as never, actor, agent, private: isPrivate, signal, progress })
  }
}
