import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { request as send } from 'undici'

/** An OpenAPI document, as far as answers go. */
export interface HindsightApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, {
    readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, { readonly schema?: object }>> }>>
  }>>>>
}

export interface Exchange {
  /** Method and path, as the document has it. */
  readonly operation: string
  readonly status: number
  /** Null if it is no JSON. */
  readonly answer: unknown
}

interface Misfit { readonly instancePath: string, readonly message?: string }
interface Validate { (value: unknown): boolean, readonly errors?: readonly Misfit[] | null }
interface Validator { addSchema (schema: object, name: string): void, compile (schema: object): Validate }

/** The validator that Fastify brings. */
const load = createRequire(createRequire(createRequire(import.meta.url).resolve('fastify')).resolve('@fastify/ajv-compiler'))
const prefix = '/api/memory/hindsight'

/** Where an answer is none of the types that the document has for its operation and status; empty if it fits. */
export function typeCheck (api: HindsightApi): (exchange: Exchange) => string[] {
  const { default: Ajv } = load('ajv/dist/2020.js') as { default: new (options: object) => Validator }
  const validator = new Ajv({ strict: false, validateFormats: false })
  validator.addSchema(api, 'hindsight')
  const known = new Map<string, Validate | null>()
  return ({ operation, status, answer }) => {
    const [method = '', path = ''] = operation.split(' ')
    const key = `${operation} ${status}`
    if (!known.has(key)) {
      const content = api.paths[path]?.[method.toLowerCase()]?.responses[status]?.content
      const steps = ['paths', path, method.toLowerCase(), 'responses', String(status), 'content', 'application/json', 'schema']
      const $ref = `hindsight#/${steps.map(step => encodeURI(step.replaceAll('/', '~1'))).join('/')}`
      known.set(key, content?.['application/json']?.schema === undefined ? null : validator.compile({ $ref }))
    }
    const validate = known.get(key)!
    if (validate === null || validate(answer)) return []
    return (validate.errors ?? []).map(({ instancePath, message }) => `${key}: ${instancePath} ${message}`)
  }
}

/** Stands between clients and a gateway, and keeps what went past; a repeated question takes the place of the one before. */
export async function recorded (
  t: Test, target: string, api: HindsightApi
): Promise<{ readonly url: string, readonly exchanges: readonly Exchange[] }> {
  const operationOf = operationsIn(api)
  const exchanges: Exchange[] = []
  let last = ''
  const pass = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method = 'GET', url = '' } = request
    const { host: _, connection: __, 'accept-encoding': ___, ...headers } = request.headers
    const hasBody = 'content-length' in headers || 'transfer-encoding' in headers
    // on a connection of its own: one that was kept may be closed at this moment
    const answer = await send(target + url, { method: method as 'GET', headers, body: hasBody ? request : null, reset: true })
    const body = Buffer.from(await answer.body.arrayBuffer())
    const { 'transfer-encoding': ____, ...rest } = answer.headers
    response.writeHead(answer.statusCode, rest as Record<string, string>).end(body)
    const isJson = String(answer.headers['content-type']).startsWith('application/json')
    const path = url.split('?')[0]!.slice(prefix.length)
    const value = isJson ? JSON.parse(body.toString()) as unknown : null
    const exchange = { operation: operationOf(method, path), status: answer.statusCode, answer: value }
    if (method === 'GET' && last === `${method} ${url}`) exchanges.pop()
    last = `${method} ${url}`
    exchanges.push(exchange)
  }
  const server = createServer((request, response) => {
    pass(request, response).catch((error: unknown) => { response.destroy(error as Error) })
  })
  server.keepAliveTimeout = 0
  await new Promise<void>(resolve => { server.listen(0, '127.0.0.1', resolve) })
  t.teardown(() => { server.close().closeAllConnections() })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, exchanges }
}

/** The operation of a request: of the paths that fit, the one with the fewest placeholders. */
function operationsIn (api: HindsightApi): (method: string, path: string) => string {
  const places = (template: string): number => template.split('{').length
  const rows = Object.keys(api.paths).sort((a, b) => places(a) - places(b)).map(template => {
    const pattern = template.replaceAll(/[.]/g, '\\.').replaceAll(/\{[^}:]+(:path)?\}/g, '[^/]+')
    return { template, pattern: new RegExp(`^${pattern}$`) }
  })
  return (method, path) => {
    const found = rows.find(({ template, pattern }) => pattern.test(path) && method.toLowerCase() in api.paths[template]!)
    return `${method} ${found?.template ?? path}`
  }
}
