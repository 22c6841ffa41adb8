import type { JsonBody } from 'svc-gateway/plugin'

/** llama-server's own Messages API has no answers of a shape: it answers in prose; and several calls where one was asked for. */
export function ignoredInMessages (body: JsonBody): boolean {
  return memberOf(body, 'output_config', 'format') != null || memberOf(body, 'tool_choice', 'disable_parallel_tool_use') === true
}

/** Where the template of a model knows several calls, llama-server lets it make them, whatever the client says. */
export function ignoredInResponses (body: JsonBody): boolean {
  return body.has('tools') && body.has('parallel_tool_calls') && body.value('parallel_tool_calls') === false
}

function memberOf (body: JsonBody, key: string, name: string): unknown {
  if (!body.has(key)) return undefined
  const value = body.value(key)
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>)[name] : undefined
}
