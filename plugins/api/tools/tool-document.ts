import type { ToolEntry } from 'svc-gateway/plugin'

interface About {
  /** Where the gateway answers, as the client calls it. */
  readonly url: string
  readonly version: string
}

/** Tools as operations of an OpenAPI document, without those that wait for an approval: such a client asks no second time. */
export function toolDocument (tools: readonly ToolEntry[], { url, version }: About) {
  const open = tools.filter(({ gated }) => !gated)
  return {
    openapi: '3.1.0',
    info: { title: 'svc tools', version, description: 'Tools to inspect and manage this gateway' },
    servers: [{ url }],
    paths: Object.fromEntries(open.map(tool => [`/api/tools/${tool.name}`, { post: operation(tool) }]))
  }
}

function operation ({ name, title, description, inputSchema }: ToolEntry): object {
  const { required = [] } = inputSchema as { readonly required?: readonly string[] }
  return {
    operationId: name,
    summary: title ?? name,
    description,
    requestBody: { required: required.length > 0, content: { 'application/json': { schema: inputSchema } } },
    responses: { 200: { description: 'Its result', content: { 'application/json': { schema: { type: 'object' } } } } }
  }
}
