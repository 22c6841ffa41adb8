interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query'
  readonly required: boolean
  readonly schema: { readonly examples?: readonly unknown[] }
}

interface Operation {
  readonly tags: readonly string[]
  readonly parameters: readonly Parameter[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly example?: unknown }>> }
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, unknown>> }>>
}

export interface ApiDocument {
  readonly tags: ReadonlyArray<{ readonly name: string }>
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

interface Call { readonly method: string, readonly path: string, readonly operation: Operation }

/** What the embedded engine of a test serves. */
const SERVED = new Set(['/v1/chat/completions', '/v1/embeddings'])

/**
 * A program in TypeScript that calls every operation of the document with its example, by the types that openapi-typescript
 * made from it, and when it runs makes one call of each group. Prints a line for each. Pure.
 */
export function typedCalls (document: ApiDocument): string {
  const calls = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })))
  const chosen = document.tags.map(({ name }) => chosenOf(calls.filter(({ operation }) => operation.tags[0] === name)))
  const lines = chosen.map(call => {
    const name = `${call.operation.tags[0]}: ${call.method} ${call.path}`
    return `await check(${JSON.stringify(name)}, ${isSimple(call) || SERVED.has(call.path)}, all.c${calls.indexOf(call)})`
  })
  return `import createClient from 'openapi-fetch'
import type { paths } from './openapi.js'

declare const process: { env: Record<string, string> }
const client = createClient<paths>({ baseUrl: process.env.RING_URL! })

export const all = {
${calls.map((call, i) => `  c${i}: () => ${expression(call)}`).join(',\n')}
}

async function check (name: string, mustServe: boolean, call: () => Promise<{ data?: unknown, error?: unknown, response: Response }>): Promise<void> {
  let problem: string | undefined
  try {
    const { data, error, response } = await call()
    if (mustServe && !response.ok) problem = \`\${response.status} \${JSON.stringify(error)}\`
    if (response.status !== 204 && data === undefined && error === undefined) problem = 'neither an answer nor an error'
  } catch (error) {
    problem = String(error)
  }
  console.log(JSON.stringify({ name, error: problem }))
}

${lines.join('\n')}
`
}

function chosenOf (calls: readonly Call[]): Call {
  const served = calls.find(({ path }) => SERVED.has(path))
  return served ?? calls.find(isSimple) ?? calls.find(({ operation }) => operation.requestBody !== undefined) ?? calls[0]!
}

/** What can be asked of any gateway, and ends. */
function isSimple ({ method, operation }: Call): boolean {
  const [first] = Object.values(operation.responses)
  return method === 'GET' && operation.parameters.every(({ required }) => !required) && 'application/json' in (first?.content ?? {})
}

function expression ({ method, path, operation }: Call): string {
  const params: Record<string, Record<string, unknown>> = {}
  for (const { name, in: where, required, schema } of operation.parameters) {
    if (required) (params[where] ??= {})[name] = schema.examples![0]
  }
  const [content] = Object.values(operation.requestBody?.content ?? {})
  const options = [
    ...(Object.keys(params).length === 0 ? [] : [`params: ${JSON.stringify(params)}`]),
    ...(content?.example === undefined ? [] : [`body: ${JSON.stringify(content.example)}`])
  ]
  return `client.${method}(${[JSON.stringify(path), ...(options.length === 0 ? [] : [`{ ${options.join(', ')} }`])].join(', ')})`
}
