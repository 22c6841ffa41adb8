import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import t from 'tap'
import { errorCodes, type ErrorCode } from '../../../kernel/contract/index.js'
import { wireGateway } from '../wire-gateway.js'

interface Case {
  readonly name: string
  readonly body: string | Buffer
  readonly code: ErrorCode
  readonly param?: string
  readonly says?: RegExp
}

const messages = '"messages":[{"role":"user","content":"hi"}]'

t.test('every bad request is told apart with the code of the table, none with 500, and the gateway goes on', async t => {
  const gateway = await wireGateway(t, {
    files: {
      'etc/svc/slots/off.toml': 'enabled = false\nprovider = "fake"\ndevice = "cpu"\n[model]\ndefault = "fake-model"\n',
      'etc/svc/upstreams.toml': '[[upstream]]\nname = "away"\nurl = "http://127.0.0.1:9/v1"\nenabled = false\n',
      'etc/svc/slots/embed.toml': 'type = "embedding"\nprovider = "fake"\ndevice = "cpu"\n[model]\ndefault = "embedder"\n',
      'var/lib/svc/registry/registry.toml':
        '[models.fake-model]\npath = "/dev/null"\n[models.embedder]\npath = "/dev/null"\n[models."vendor/unused"]\npath = "/dev/null"\n'
    },
    svc: '[server]\nv1_body_limit_bytes = 1048576\n'
  })
  const cases: Case[] = [
    { name: 'no body', body: '', code: 'request.invalid_json', says: /the body is empty/ },
    { name: 'not JSON', body: 'model=agent&prompt=hi', code: 'request.invalid_json' },
    { name: 'truncated JSON', body: `{"model":"agent",${messages}`, code: 'request.invalid_json' },
    { name: 'ten thousand brackets', body: `{"model":"agent","messages":${'['.repeat(5_000)}${']'.repeat(5_000)}}`, code: 'request.invalid_json' },
    { name: 'a hundred thousand keys', body: `{"model":"agent"${',"a":1'.repeat(100_000)}}`, code: 'request.invalid_json' },
    { name: 'a list', body: '[]', code: 'request.not_an_object' },
    { name: 'a missing model', body: `{${messages}}`, code: 'request.missing_model', param: 'model' },
    { name: 'an empty model', body: `{"model":"  ",${messages}}`, code: 'request.missing_model', param: 'model' },
    { name: 'a model that is no string', body: `{"model":7,${messages}}`, code: 'request.missing_model', param: 'model' },
    { name: 'an unknown model', body: `{"model":"gpt-99",${messages}}`, code: 'model.not_found', param: 'model' },
    { name: 'an unknown virtual name', body: `{"model":"svc/nobody",${messages}}`, code: 'model.not_found', param: 'model' },
    { name: 'a registered model that no slot has', body: `{"model":"vendor/unused",${messages}}`, code: 'model.not_loaded', param: 'model' },
    { name: 'a model of a disabled upstream', body: `{"model":"away/large",${messages}}`, code: 'model.not_loaded', param: 'model', says: /upstream 'away' is disabled; enable it with `svc upstream edit away --enable`/ },
    { name: 'a disabled slot', body: `{"model":"off",${messages}}`, code: 'model.not_loaded', param: 'model' },
    { name: 'a slot of another type', body: `{"model":"embed",${messages}}`, code: 'dispatch.no_route', param: 'model' },
    { name: 'a body above the limit', body: `{"model":"agent","messages":["${'x'.repeat(1024 * 1024)}"]}`, code: 'request.too_large' }
  ]
  for (const { name, body, code, param, says = /./ } of cases) {
    const response = await gateway.fetch('/v1/chat/completions', { method: 'POST', body, headers: { 'content-type': 'application/json' } })
    const { error } = await response.json() as { error: Record<string, unknown> }
    t.equal(response.status, errorCodes[code].status, `${name}: status`)
    t.match(error, { code, type: /./, message: says, request_id: response.headers.get('x-request-id')! }, name)
    t.equal(error.param ?? null, param ?? null, `${name}: param`)
    t.equal(response.headers.get('x-should-retry'), 'false', `${name}: no SDK asks again`)
  }
  t.equal((await gateway.chat({})).status, 200, 'a good request still works')
  const long = await gateway.fetch('/v1/chat/completions', { method: 'POST', body: `{"model":"${'x'.repeat(500_000)}",${messages}}`, headers: { 'content-type': 'application/json' } })
  const told = await long.text()
  t.equal(long.status, 404)
  t.ok(told.length < 1_000, `a name of half a megabyte is cut: ${told.length} bytes`)
  t.match(told, new RegExp(`'${'x'.repeat(200)}…' is not a slot`))
  const marked = await gateway.fetch('/v1/chat/completions', { method: 'POST', body: `\ufeff{"model":"agent",${messages}}`, headers: { 'content-type': 'application/json' } })
  t.equal(marked.status, 200, 'a byte order mark is none of its business')
  t.equal(gateway.runtime.engine('agent').requests.at(-1)!.body.toString(), `{"model":"fake-model",${messages}}`, 'nor the engine\'s')
})

t.test('a body of 64 MB reaches the engine', async t => {
  const gateway = await wireGateway(t)
  const content = Buffer.alloc(65 * 1024 * 1024, 'A')
  // in bytes by `node:http`: as a text of `fetch` it would be copied five times before it leaves
  const [before, after] = [`{"model":"agent","messages":[{"role":"user","content":"`, '"}]}']
  const send = async (bytes: number): Promise<IncomingMessage> => {
    const headers = { 'content-type': 'application/json', 'content-length': before.length + bytes + after.length }
    const request = httpRequest(`${gateway.baseUrl}/v1/chat/completions`, { method: 'POST', agent: false, headers })
    t.teardown(() => request.destroy())
    const answered = once(request, 'response') as Promise<[IncomingMessage]>
    request.on('error', () => {})
    request.write(before)
    request.write(content.subarray(0, bytes))
    request.end(after)
    return (await answered)[0].resume()
  }
  const bytes = 63 * 1024 * 1024
  t.equal((await send(bytes)).statusCode, 200)
  const seen = await gateway.runtime.engine('agent').request(0)
  t.equal(seen.body.length, JSON.stringify({ model: 'fake-model', messages: [{ role: 'user', content: '' }] }).length + bytes)
  const more = await send(content.length).catch(() => null)
  // a client that is still sending may see the connection close before it reads the answer
  if (more !== null) t.equal(more.statusCode, 413)
  t.equal((await gateway.chat({})).status, 200)
})

t.test('unknown paths are a 404 and other methods a 405', async t => {
  const gateway = await wireGateway(t)
  const cases: Array<[string, string, number, string, string | null]> = [
    ['GET', '/v1/nothing', 404, 'system.http_404', null],
    ['GET', '/', 404, 'system.http_404', null],
    ['GET', '/v1/chat/completions', 405, 'system.http_405', 'POST'],
    ['DELETE', '/v1/models/agent', 405, 'system.http_405', 'GET, HEAD'],
    ['GET', '/v1/models/no/such/model', 404, 'model.not_found', null],
    ['GET', '/v1/models/%zz', 400, 'validation.invalid', null]
  ]
  for (const [method, path, status, code, allow] of cases) {
    const response = await gateway.fetch(path, { method })
    t.equal(response.status, status, `${method} ${path}`)
    t.match(await response.json(), { error: { code } }, `${method} ${path}`)
    t.equal(response.headers.get('allow'), allow, `${method} ${path}`)
    t.ok(response.headers.get('x-request-id'), 'has a request id')
    t.equal(response.headers.get('x-should-retry'), 'false', `${method} ${path}: no SDK asks again`)
  }
})

t.test('foreign Host names get 421 and foreign origins 403; allowed ones pass, with CORS headers', async t => {
  const gateway = await wireGateway(t, { svc: '[server]\nallowed_hosts = ["gateway.lan"]\nallowed_origins = ["https://app.example"]\n' })
  const { port } = new URL(gateway.baseUrl)
  const hosts: Array<[string, number]> = [
    [`127.0.0.1:${port}`, 200], [`localhost:${port}`, 200], ['[::1]:80', 200], ['192.168.1.5', 200], ['gateway.lan', 200], ['a.localhost', 200],
    ['evil.example', 421], [`evil.example:${port}`, 421], ['127.0.0.1.evil.example', 421], ['', 421]
  ]
  for (const [host, status] of hosts) t.equal(await statusWithHost(port, host), status, `Host: ${host}`)
  const origins: Array<[string, number, string | null]> = [
    ['https://evil.example', 403, 'https://evil.example'], ['null', 403, 'null'], [gateway.baseUrl, 200, null], ['https://app.example', 200, 'https://app.example']
  ]
  for (const [origin, status, allowed] of origins) {
    const response = await gateway.fetch('/v1/models', { headers: { origin } })
    t.equal(response.status, status, `Origin: ${origin}`)
    t.equal(response.headers.get('access-control-allow-origin'), allowed, `Origin: ${origin}`)
  }
  const preflight = await gateway.fetch('/v1/chat/completions', {
    method: 'OPTIONS', headers: { 'origin': 'https://app.example', 'access-control-request-headers': 'content-type' }
  })
  t.equal(preflight.status, 204)
  t.match(preflight.headers.get('access-control-allow-methods'), /POST/)
  const answered = await gateway.fetch('/v1/chat/completions', {
    method: 'POST', headers: { origin: 'https://app.example' }, body: `{"model":"agent",${messages}}`
  })
  t.equal(answered.headers.get('access-control-allow-origin'), 'https://app.example', 'forwarded answers carry it too')
})

t.test('a client\'s request id is kept, and a bad one replaced', async t => {
  const gateway = await wireGateway(t)
  const given = await gateway.fetch('/v1/models', { headers: { 'x-request-id': 'trace-42' } })
  t.equal(given.headers.get('x-request-id'), 'trace-42')
  const bad = await gateway.fetch('/v1/models', { headers: { 'x-request-id': 'a b\tc' } })
  t.match(bad.headers.get('x-request-id'), /^req-[\w-]{12}-\w+$/)
})

function statusWithHost (port: string, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), '127.0.0.1', () => {
      socket.write(`GET /v1/models HTTP/1.1\r\n${`Host: ${host}\r\n`}Connection: close\r\n\r\n`)
    })
    let text = ''
    socket.on('data', chunk => { text += chunk.toString() })
    socket.on('close', () => resolve(Number(text.split(' ')[1])))
    socket.on('error', reject)
  })
}
