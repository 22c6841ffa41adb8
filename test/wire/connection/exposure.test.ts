import { request } from 'node:http'
import t from 'tap'
import { createGateway } from '../../../kernel/gateway.js'
import { FakeEngineRuntime } from '../../../kernel/testing/index.js'
import type { Logger } from '../../../kernel/contract/index.js'
import root from '../../../plugins/api/root/index.js'
import settings from '../../../plugins/api/settings/index.js'
import status from '../../../plugins/api/status/index.js'
import messages from '../../../plugins/v1/messages/index.js'
import vectors from '../../../plugins/v1/vectors/index.js'
import { wireGateway } from '../wire-gateway.js'

t.test('a gateway that listens beyond this machine says that it asks nobody who they are', async t => {
  for (const [host, told] of [['127.0.0.1', 0], ['localhost', 0], ['0.0.0.0', 1]] as const) {
    const warnings: string[] = []
    const none = (): void => {}
    const warn = (_fields: object, message: string): void => { warnings.push(message) }
    const log = { debug: none, info: none, error: none, warn } as unknown as Logger
    const gateway = createGateway({ home: t.testdir(), host, port: 0, runtime: new FakeEngineRuntime(), log })
    await gateway.start()
    await gateway.stop()
    t.equal(warnings.filter(message => /no authentication.*anyone who reaches the port/.test(message)).length, told, host)
  }
})

const page = 'https://page.example'

t.test('foreign hosts and origins are refused at the socket, with a reason', async t => {
  const warnings: Array<{ fields: Record<string, unknown>, message: string }> = []
  const none = (): void => {}
  const log = {
    debug: none,
    info: none,
    error: none,
    warn: (fields: Record<string, unknown>, message: string) => { warnings.push({ fields, message }) }
  } as unknown as Logger
  const gateway = await wireGateway(t, { log, plugins: [messages, root, settings, status, vectors] })
  const get = async (path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Response> =>
    await gateway.fetch(path, { method, headers, redirect: 'manual' })

  t.test('a page that is refused can read why, and the log has the line that lets it in, once', async t => {
    for (const path of ['/v1/models', '/v1/models', '/api/slots']) {
      const refused = await get(path, { origin: page })
      t.equal(refused.status, 403)
      t.equal(refused.headers.get('access-control-allow-origin'), page)
      t.match(await refused.json(), { error: { code: 'request.origin_not_allowed', message: /allowed_origins/ } })
    }
    const preflight = await get('/v1/chat/completions', { 'origin': page, 'access-control-request-method': 'POST', 'access-control-request-headers': 'content-type' }, 'OPTIONS')
    t.equal(preflight.status, 204, 'the browser goes on to the request, which is refused where the page can see it')
    t.match(preflight.headers.get('access-control-allow-methods'), 'POST')
    const chat = await gateway.fetch('/v1/chat/completions', { method: 'POST', headers: { origin: page }, body: '{"model":"agent","messages":[]}' })
    t.equal(chat.status, 403)
    t.equal(gateway.runtime.started.length, 0, 'nothing was done')
    const told = warnings.filter(({ fields }) => fields.origin === page)
    t.equal(told.length, 1)
    t.match(told[0]!.message, 'allowed_origins = ["https://page.example"], or ["https://page.example/v1"]')
  })

  t.test('an origin can be let in to /v1 alone', async t => {
    await gateway.fetch('/api/settings', { method: 'PATCH', body: JSON.stringify({ server: { allowed_origins: [`${page}/v1`] } }) })
    const allowed = await get('/v1/models', { origin: page })
    t.equal(allowed.status, 200)
    const exposed = allowed.headers.get('access-control-expose-headers') ?? ''
    for (const name of ['x-request-id', 'request-id', 'retry-after', 'x-should-retry', 'mcp-session-id']) t.match(exposed, name)
    t.equal((await get('/api/settings', { origin: page })).status, 403)
  })

  t.test('what another site embeds does not reach the management', async t => {
    for (const path of ['/api/settings', '/mcp/admin', '/upstream/agent/']) t.equal((await get(path, { 'sec-fetch-site': 'cross-site' })).status, 403, path)
    t.equal((await get('/api/settings', { 'sec-fetch-site': 'same-origin' })).status, 200)
  })

  t.test('containers reach the gateway by the name they have for this machine; other names are logged', async t => {
    const asked = (host: string): Promise<number> => new Promise((resolve, reject) => {
      request(`${gateway.baseUrl}/v1/models`, { headers: { host } }, answer => {
        answer.resume()
        resolve(answer.statusCode!)
      }).on('error', reject).end()
    })
    t.equal(await asked('host.docker.internal:8080'), 200)
    t.equal(await asked('host.containers.internal'), 200)
    t.equal(await asked('gateway.example:8080'), 421)
    t.equal(await asked('gateway.example:8081'), 421)
    t.strictSame(warnings.filter(({ message }) => message.includes('allowed_hosts = ["gateway.example"]')).length, 1)
  })

  t.test('trailing slashes are served', async t => {
    t.equal((await get('/v1/models/')).status, 200)
    t.equal((await get('/api/settings/')).status, 200)
    const chat = await gateway.fetch('/v1/chat/completions/', { method: 'POST', body: '{"model":"agent","messages":[]}' })
    t.equal(chat.status, 200)
  })

  t.test('what clients of other servers look for at the root is there', async t => {
    for (const path of ['/health', '/v1/health']) t.match(await (await get(path)).json(), { status: 'ok' }, path)
    t.match(await (await get('/models')).json(), { object: 'list' })
    t.match(await (await get('/models/agent')).json(), { id: 'agent' })
    for (const path of ['/chat/completions', '/completions']) {
      const response = await gateway.fetch(path, { method: 'POST', body: '{"model":"agent","messages":[]}' })
      t.equal(response.status, 200, path)
    }
    for (const path of ['/embeddings', '/rerank', '/reranking', '/v1/reranking']) {
      const response = await gateway.fetch(path, { method: 'POST', body: '{"model":"agent"}' })
      t.match(await response.json(), { error: { code: 'dispatch.no_route' } }, `${path} is the handler's own answer`)
    }
    const options = await get('/v1/chat/completions', {}, 'OPTIONS')
    t.equal(options.status, 204)
    t.equal(options.headers.get('allow'), 'POST, OPTIONS')
    t.match(await (await get('/messages')).json(), { error: { code: 'system.http_404', message: /did you mean \/v1\/messages/ } })
  })

  t.test('the bare address says where everything is', async t => {
    const html = await get('/', { accept: 'text/html,application/xhtml+xml' })
    t.match(html.headers.get('content-type'), 'text/html')
    const text = await html.text()
    for (const link of ['href="api/docs"', 'href="v1/models"', 'href="api/status"', 'svc 0.']) t.match(text, link)
    t.match(await (await get('/', { accept: 'application/json' })).json(), { name: 'svc', version: String, base_url: '/v1', docs: '/api/docs', status: '/api/status' })
    const document = await get('/openapi.json')
    t.equal(document.status, 302)
    t.equal(new URL(document.headers.get('location')!, `${gateway.baseUrl}/openapi.json`).pathname, '/api/openapi.json')
  })

  t.test('failures around /v1/messages look as its clients expect them', async t => {
    for (const [path, method, status] of [['/v1/messages/batches', 'POST', 404], ['/v1/messages', 'GET', 405], ['/v1/messages/count_tokens/x', 'GET', 404]] as const) {
      const response = await get(path, {}, method)
      t.equal(response.status, status)
      t.match(await response.json(), { type: 'error', error: { type: /error$/, message: String } }, path)
      t.ok(response.headers.get('request-id'))
    }
    t.match(await (await get('/v1/nothing')).json(), { error: { code: 'system.http_404', type: String } })
  })
})
