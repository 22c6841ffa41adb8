import { Validator } from '@seriousme/openapi-schema-validator'
import { isDeepStrictEqual } from 'node:util'
import t from 'tap'
import { z } from 'zod'
import { definePlugin, defineRoute, handled } from '../../../kernel/contract/index.js'
import { createFakeProviderPlugin, createTestGateway, FakeEngineRuntime, type TestGateway } from '../../../kernel/testing/index.js'
import builtins from '../../../plugins/index.js'
import { promisedRoutes, promisedSettings } from './promised-routes.js'

type Schema = Readonly<Record<string, unknown>>
type Content = Readonly<Record<string, { readonly schema?: Schema }>>

interface Operation {
  readonly summary: string
  readonly operationId: string
  readonly parameters: ReadonlyArray<{ readonly name: string, readonly in: string, readonly schema?: Schema }>
  readonly requestBody?: { readonly required: boolean, readonly content: Content }
  readonly responses: Readonly<Record<string, { readonly content?: Content }>>
}

interface OpenApi extends Record<string, unknown> {
  readonly openapi: string
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

const webSockets = new Set(['GET /api/board/events', 'GET /api/agents/{agent}/events', 'GET /api/agents/{agent}/submit', 'GET /v1/realtime', 'GET /v1/responses'])

/** Their clients wait for 200. */
const empty = new Set(['POST /api/copy', 'DELETE /api/delete'])

let gateway: TestGateway
let document: OpenApi
let operations: ReadonlyMap<string, Operation>

t.before(async () => {
  gateway = await createTestGateway({ builtins, plugins: [createFakeProviderPlugin()], runtime: new FakeEngineRuntime() })
  document = await (await gateway.fetch('/api/openapi.json')).json() as OpenApi
  operations = new Map(Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => [`${method.toUpperCase()} ${path}`, operation] as const)))
})
t.teardown(() => gateway.close())

t.test('the document is valid OpenAPI 3.1', async t => {
  t.match(document.openapi, /^3\.1\./)
  t.same(await new Validator().validate(structuredClone(document)), { valid: true })
  // a validator that takes everything would prove nothing
  t.match(await new Validator().validate({ ...structuredClone(document), paths: { '/x': { get: { responses: 3 } } } }), { valid: false })
  const ids = [...operations.values()].map(({ operationId }) => operationId)
  t.equal(new Set(ids).size, ids.length, 'every operation has an id of its own')
})

t.test('it has every route that the gateway has, and no other', async t => {
  const { plugins } = await (await gateway.fetch('/api/plugins')).json() as { plugins: Array<{ name: string, state: string, routes: string[] }> }
  t.strictSame(plugins.filter(({ state }) => state !== 'active').map(({ name }) => name), [], 'all plugins are up')
  const real = plugins.flatMap(({ routes }) => routes).filter(route => !/^(HEAD|OPTIONS) /.test(route))
    .map(route => route.replace(/:([A-Za-z_]\w*)/g, '{$1}').replace(/\*$/, '{path}'))
  t.ok(real.length > 100, `${real.length} routes`)
  t.strictSame([...operations.keys()].sort(), [...new Set(real)].sort())
})

t.test('every route that is promised is there, with its parameters, its body and its answer', t => {
  for (const [name, { query = [], body = [], answer = [] }] of Object.entries(promisedRoutes)) {
    const operation = operations.get(name)
    if (operation === undefined) {
      t.fail(name)
      continue
    }
    const inQuery = operation.parameters.filter(parameter => parameter.in === 'query').map(parameter => parameter.name)
    t.strictSame(query.filter(parameter => !inQuery.includes(parameter)), [], `${name}: query`)
    if (body.length > 0) {
      const { properties = {}, required = [] } = objectOf(Object.values(operation.requestBody?.content ?? {})[0]?.schema)
      t.strictSame(body.filter(key => !(key.replace('!', '') in properties)), [], `${name}: body`)
      t.strictSame(body.filter(key => required.includes(key.replace('!', '')) !== key.endsWith('!')), [], `${name}: what its body must have`)
    }
    if (answer.length > 0) {
      const { properties = {} } = objectOf(operation.responses['200']?.content?.['application/json']?.schema)
      t.strictSame(answer.filter(key => !(key in properties)), [], `${name}: answer`)
    }
  }
  t.end()
})

interface Properties { readonly properties?: object, readonly required?: readonly string[] }

/** The schema itself, or of what it is a list of. */
function objectOf (schema: Schema | undefined): Properties {
  const found = resolved(schema)
  return (found?.type === 'array' ? resolved(found.items as Schema) : found) as Properties | undefined ?? {}
}

t.test('every setting that is promised is there, with its default and its bounds', async t => {
  const told: unknown = await (await gateway.fetch('/api/settings/schema')).json()
  const found = new Map<string, unknown[]>()
  const walk = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    for (const [key, inner] of Object.entries(value)) {
      found.set(key, [...found.get(key) ?? [], inner])
      walk(inner)
    }
  }
  walk(told)
  for (const [key, rules] of promisedSettings) {
    const rows = found.get(key) ?? []
    t.ok(rows.some(row => Object.entries(rules).every(([rule, value]) => (row as Schema)[rule] === value)), `${key}: ${JSON.stringify(rows)}`)
  }
})

t.test('every refusal that is promised has its code and its status', async t => {
  const [{ name }] = await (await gateway.fetch('/api/profiles')).json() as [{ name: string }]
  const envelope: unknown = await (await gateway.fetch(`/api/profiles/${name}/export`, { method: 'POST' })).json()
  for (const [method, path, body, status, code] of [
    ['POST', '/v1/audio/speech', { input: 'x' }, 400, 'request.missing_model'],
    ['POST', '/v1/chat/completions', { model: 'no-such-model', messages: [{ role: 'user', content: 'x' }] }, 404, 'model.not_found'],
    ['POST', '/api/services/openwebui/action', { action: 'fly' }, 400, 'services.action_not_allowed'],
    ['POST', '/api/services/nothing/action', { action: 'start' }, 404, 'services.unknown'],
    ['GET', '/api/profiles/nothing', null, 404, 'profiles.not_found'],
    ['POST', '/api/profiles/import', { envelope: {}, name: 'x' }, 400, 'profiles.bad_envelope'],
    ['POST', '/api/profiles/import', { envelope, dry_run: false }, 400, 'profiles.import_no_name'],
    ['POST', '/api/profiles/import', { envelope, name, dry_run: false }, 409, 'profiles.exists'],
    ['GET', '/api/slots/nothing/voices', null, 404, 'slot.not_found']
  ] as const) {
    const answer = await gateway.fetch(path, { method, ...body === null ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) } })
    t.match({ status: answer.status, body: await answer.json() as unknown }, { status, body: { error: { code } } }, `${method} ${path}: ${code}`)
  }
  const form = new FormData()
  form.set('file', new Blob(['RIFF']), 'a.wav')
  const spoken = await gateway.fetch('/v1/audio/transcriptions', { method: 'POST', body: form })
  t.match({ status: spoken.status, body: await spoken.json() as unknown }, { status: 400, body: { error: { code: 'request.missing_model' } } })
})

t.test('every operation says what it takes and what it answers', async t => {
  const wrong: string[] = []
  const must = (holds: boolean, what: string): void => { if (!holds) wrong.push(what) }
  for (const [name, { summary, parameters, requestBody, responses }] of operations) {
    must(summary !== '', `${name} has a summary`)
    for (const [type, content] of Object.entries(requestBody?.content ?? {})) {
      must(type === 'application/octet-stream' || 'example' in content, `${name}: an example of its body`)
    }
    const placeholders = [...name.matchAll(/\{(\w+)\}/g)].map(([, placeholder]) => placeholder)
    must(isDeepStrictEqual(parameters.filter(parameter => parameter.in === 'path').map(parameter => parameter.name), placeholders), `${name}: path`)
    for (const { name: parameter, in: where, schema = {} } of parameters) {
      must(isSaying(schema), `${name}: parameter ${parameter}`)
      must(where !== 'path' || 'enum' in schema || 'examples' in schema, `${name}: what ${parameter} may be`)
      must(where !== 'path' || 'enum' in schema || 'pattern' in schema, `${name}: how ${parameter} is written`)
    }
    for (const { schema } of Object.values(requestBody?.content ?? {})) {
      must(isSaying(schema), `${name}: body`)
      must(/^[A-Z][A-Za-z0-9]+$/.test(String(resolved(schema)?.title)), `${name}: the name of its body`)
    }
    const [[status, success] = ['', {}], ...others] = Object.entries(responses)
    must(name === 'GET /openapi.json' ? status === '302' : webSockets.has(name) ? status === '101' : /^2\d\d$/.test(status), `${name}: success`)
    must(isDeepStrictEqual(others.map(([other]) => other).filter(other => !/^[23](\d\d|XX)$/.test(other)), ['default']), `${name}: refusals`)
    must(success.content !== undefined || empty.has(name) || /^(101|204|302)$/.test(status), `${name}: no answer`)
    for (const [type, { schema }] of Object.entries(success.content ?? {})) {
      // bytes and the events of a stream are described by their type alone
      const isBytes = /^(image|audio|video)\/|^text\/event-stream$|^application\/x-ndjson$|^\*\/\*$|^application\/(octet-stream|gzip|zip|x-tar|x-subrip)$/.test(type)
      must(isBytes || isSaying(schema), `${name}: answer as ${type}`)
    }
  }
  t.ok(operations.size > 100, `${operations.size} operations`)
  t.strictSame(wrong, [])
})

function resolved (schema: Schema | undefined): Schema | undefined {
  if (typeof schema?.$ref !== 'string') return schema
  const { schemas } = document.components as { schemas: Readonly<Record<string, Schema>> }
  return schemas[schema.$ref.split('/').at(-1)!]
}

/** A schema that lets everything pass says nothing, and so does an object without a word about what is in it. */
function isSaying (schema: Schema | undefined): boolean {
  if (schema === undefined) return false
  const words = Object.keys(schema).filter(key => key !== 'description' && key !== 'title')
  return words.length > 0 && JSON.stringify(schema) !== '{"type":"object"}'
}

t.test('an answer that does not fit its schema is a failure of the test that sees it', async t => {
  const odd = definePlugin({
    name: 'odd',
    kind: 'routes',
    apiVersion: 1,
    register (ctx) {
      ctx.addRoute(defineRoute({
        method: 'GET', url: '/api/odd', summary: 'odd', schema: { response: z.strictObject({ n: z.int() }) }, handler: () => ({ n: 1, more: true })
      }))
    }
  })
  for (const [checkAnswers, status] of [[true, 500], [false, 200]] as const) {
    const other = await createTestGateway({ plugins: [odd], runtime: new FakeEngineRuntime(), checkAnswers })
    t.teardown(() => other.close())
    t.equal((await other.fetch('/api/odd')).status, status)
  }
})

t.test('an answer that the document does not have is a failure, too', async t => {
  const summary = 'odd'
  const odd = definePlugin({
    name: 'odd',
    kind: 'routes',
    apiVersion: 1,
    register (ctx) {
      ctx.addRoute(defineRoute({ method: 'GET', url: '/api/odd/status', summary, schema: { response: z.object({}) }, handler: ({ reply }) => { void reply.code(202); return {} } }))
      ctx.addRoute(defineRoute({ method: 'GET', url: '/api/odd/type', summary, schema: { response: z.object({}) }, handler: ({ reply }) => { void reply.type('text/csv').send('a,b'); return handled } }))
      ctx.addRoute(defineRoute({ method: 'POST', url: '/v1/odd/raw', summary, bodyKind: 'buffer', produces: 'audio/*', handler: ({ reply }) => { reply.hijack(); reply.raw.writeHead(206, ['content-type', 'audio/wav']).end(); return handled } }))
      ctx.addRoute(defineRoute({
        method: 'GET', url: '/v1/odd/known', summary, produces: 'audio/*', answers: [{ status: '3XX' }, { type: 'text/csv' }],
        handler: ({ reply }) => { void reply.type('text/csv; charset=utf-8').send('a,b'); return handled }
      }))
    }
  })
  const other = await createTestGateway({ plugins: [odd], runtime: new FakeEngineRuntime() })
  for (const [method, path, misfit] of [
    ['GET', '/api/odd/status', 'GET /api/odd/status: status 202'], ['GET', '/api/odd/type', 'GET /api/odd/type: status 200 as text/csv'],
    ['POST', '/v1/odd/raw', 'POST /v1/odd/raw: status 206']
  ] as const) {
    const answer = await other.fetch(path, { method })
    t.equal(answer.status, 500, path)
    t.equal(answer.headers.get('x-svc-undocumented-answer'), misfit)
  }
  t.equal((await other.fetch('/v1/odd/known')).status, 200)
  await t.rejects(other.close(), { message: /no such answer: GET \/api\/odd\/status: status 202/ })
})

t.test('a key of a slot may be null wherever the document says so, in its tables too', async t => {
  const { schema } = operations.get('POST /api/slots')!.requestBody!.content['application/json']!
  const { properties } = schema as { properties: Record<string, Schema> }
  const nulled = Object.entries(properties).filter(([, key]) => ways(key).some(({ type }) => type === 'null'))
  t.ok(nulled.length > 20)
  const tables = nulled.flatMap(([name, key]) => ways(key).filter(inner => inner.properties !== undefined).map(inner =>
    [name, Object.fromEntries(Object.keys(inner.properties as object).map(inside => [inside, null]))] as const))
  t.ok(tables.length > 3)
  for (const [i, body] of [Object.fromEntries(nulled.map(([key]) => [key, null])), Object.fromEntries(tables)].entries()) {
    const response = await gateway.fetch('/api/slots', { method: 'POST', body: JSON.stringify({ name: `nulled-${i}`, ...body }) })
    t.equal(response.status, 201, await response.text())
  }
})

function ways (schema: Schema): Schema[] {
  return Array.isArray(schema.anyOf) ? schema.anyOf.flatMap(way => ways(way as Schema)) : [schema]
}

t.test('a client that is generated from the document sends what the gateway takes', async t => {
  const operation = (name: string): Operation => operations.get(name)!
  for (const [name, required] of [
    ['POST /api/slots', true], ['POST /v1/chat/completions', true], ['POST /api/models/scan', false], ['POST /api/slots/{name}/unload', false],
    ['POST /api/slots/{name}/backend', true]
  ] as const) t.equal(operation(name).requestBody?.required, required, name)
  t.match(operation('DELETE /api/slots/{name}').parameters.find(({ name }) => name === 'force')?.schema, { type: 'boolean' })
  for (const name of ['POST /api/slots', 'PUT /api/slots/{name}/config', 'PATCH /api/settings']) {
    t.equal((operation(name).requestBody?.content['application/json']?.schema as { additionalProperties?: unknown }).additionalProperties, false, name)
  }
  t.match(operation('GET /api/activity/export').responses['200']?.content, { 'text/csv': {}, 'application/json': {} })
  t.match(operation('POST /v1/chat/completions').responses['200']?.content, { 'text/event-stream': {}, 'application/json': {} })
  t.match(operation('GET /api/meta/enums').responses, { 304: {} })
  t.match(operation('POST /api/comfyui/switchover').responses, { 202: {} })
  t.match(operation('POST /v1/chat/completions').responses.default, { content: { 'application/json': { schema: { $ref: '#/components/schemas/EngineError' } } } })
  t.match(operation('POST /v1/messages').responses.default, { content: { 'application/json': { schema: { title: 'MessagesError' } } } })
  const { components } = document as unknown as { components: { schemas: Record<string, Schema> } }
  for (const name of ['Error', 'EngineError', 'SlotRecord', 'UpstreamRow', 'Profile', 'Stack', 'Upstream', 'Settings', 'ActivityRow']) {
    t.ok(components.schemas[name], `component ${name}`)
  }
})
