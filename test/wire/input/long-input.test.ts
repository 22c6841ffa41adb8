import t from 'tap'
import builtins from '../../../plugins/index.js'
import { createFakeProviderPlugin, createTestGateway, FakeEngineRuntime } from '../../../kernel/testing/index.js'
import { chatBody, post, rawClient } from '../connection/raw-client.js'

/** What a client may send where a name is meant, and nothing else in the gateway looks like. */
const LONG = 'Ж'.repeat(6_000)
const ASCII = 'ZQ'.repeat(3_000)
const TOO_MUCH = /(Ж){201}|(ZQ){101}|(%D0%96){68}/

t.test('nothing that a client sent stands in a log line, an audit row or an answer at full length', async t => {
  const gateway = await createTestGateway({
    builtins,
    plugins: [createFakeProviderPlugin()],
    runtime: new FakeEngineRuntime(),
    autostart: false,
    files: { 'etc/svc/slots/agent.toml': 'type = "llm"\nprovider = "fake"\ndevice = "cpu"\n' }
  })
  t.teardown(() => gateway.close())
  const ask = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<void> => {
    const response = await fetch(`${gateway.baseUrl}${path}`, {
      method,
      headers: { 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) })
    })
    const text = await response.text()
    if (response.status >= 400 && TOO_MUCH.test(text)) t.fail(`${method} ${path.slice(0, 40)} ${response.status}: ${text.slice(0, 300)}`)
  }
  const name = encodeURIComponent('Ж'.repeat(300))
  for (const long of [LONG, ASCII]) {
    await ask('POST', '/v1/chat/completions', chatBody({ model: long }))
    await ask('POST', '/v1/chat/completions', chatBody({ model: `${long}/${long}` }))
    await ask('POST', '/v1/embeddings', { model: long, input: long })
    await ask('POST', '/v1/audio/speech', { model: long, input: long, voice: long })
    await ask('POST', '/v1/images/generations', { model: long, prompt: long, size: long })
    await ask('POST', '/api/slots', { name: long, type: long, [long]: long })
    await ask('POST', '/api/slots', { name: 'fresh', type: 'llm', provider: long, device: 'cpu', model: { default: long }, server: { extra_args: long } })
    await ask('PATCH', '/api/settings', { [long]: 1, server: { [long]: long, allowed_hosts: [long], host: long } })
    await ask('PUT', '/api/slots/agent/config', { [long]: long, model: { default: long } })
    await ask('PUT', '/api/slots/agent/config', { model: { default: long } })
    await ask('POST', '/api/slots/agent/swap', { model: long })
    await ask('POST', '/api/slots/agent/load')
    await ask('POST', '/api/models', { id: long, path: `/${long}`, name: long })
    await ask('POST', '/api/models', { id: 'fresh', path: `/tmp/${long}.gguf`, name: 'fresh' })
    await ask('POST', '/api/models/pull', { id: long, repo: long, file: long })
    await ask('POST', '/api/profiles', { name: long, image: long, flags: long })
    await ask('POST', '/api/upstreams', { name: long, url: long })
    await ask('POST', '/api/upstreams', { name: 'fresh', url: `http://${long}.example/v1` })
    await ask('POST', '/api/stacks', { name: long, slots: [long] })
    await ask('PUT', '/api/capabilities/embed', { slot: long, model: long })
    await ask('POST', '/api/comfyui/switchover', { mode: long })
    await ask('PUT', `/api/secrets/${encodeURIComponent(long).slice(0, 900)}`, { value: 'x' })
    await ask('GET', `/api/activity?search=${encodeURIComponent(long).slice(0, 3_000)}&outcome=${encodeURIComponent(long).slice(0, 3_000)}`)
    await ask('POST', '/v1/chat/completions', `{"model":"agent","x":${long}`)
    await ask('POST', '/api/slots', `{"x":${long}`)
    await ask('POST', '/api/slots', '{}', { 'x-svc-agent': ASCII.slice(0, 5_000), 'x-request-id': ASCII.slice(0, 5_000) })
    await ask('POST', '/api/slots', '{}', { 'content-encoding': ASCII.slice(0, 5_000), 'content-type': ASCII.slice(0, 5_000) })
  }
  for (const path of [`/${ASCII}`, `/v1/${ASCII}`, `/api/${ASCII}`, `/api/slots/${name}`, `/api/slots/${name}/load`, `/api/models/${name}`,
    `/upstream/${ASCII}/x`, `/api/upstreams/${name}`, `/api/profiles/${name}`, `/api/stacks/${name}`, `/api/requests/${name}/cancel`,
    `/api/plugins/${name}`, `/api/chat-templates/${name}`, `/api/comfyui/workflows/${name}`, `/v1/models/${ASCII}`]) {
    for (const method of ['GET', 'POST', 'DELETE']) await ask(method, path)
  }
  const raw = async (text: string): Promise<void> => {
    const client = await rawClient(t, gateway.baseUrl)
    client.send(text)
    const seen = await client.seen(/HTTP\/1\.1 [45]\d\d[^]*\}/)
    // a browser reads the refusal of its page only when the answer repeats the origin
    t.notMatch(seen.slice(seen.indexOf('\r\n\r\n')), TOO_MUCH)
    client.socket.destroy()
  }
  await raw(`GET /api/slots HTTP/1.1\r\nHost: ${ASCII}\r\n\r\n`)
  await raw(`GET /api/slots HTTP/1.1\r\nHost: localhost\r\nOrigin: http://${ASCII}\r\n\r\n`)
  await raw(`GET /api/slots?x=${ASCII} HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\n\r\n`)
  await raw(`${ASCII.slice(0, 60)} / HTTP/1.1\r\nHost: localhost\r\n\r\n`)
  const leaving = await rawClient(t, gateway.baseUrl)
  leaving.send(post(`/v1/chat/completions?${ASCII}`, chatBody()).slice(0, -20))
  leaving.socket.destroy()
  for (const line of gateway.logs) {
    const text = JSON.stringify(line)
    if (TOO_MUCH.test(text)) t.fail(`log: ${text.slice(0, 300)}`)
  }
  for (const row of gateway.gateway.kernel().activity.list({ limit: 1_000 })) {
    if (TOO_MUCH.test(JSON.stringify(row))) t.fail(`audit: ${JSON.stringify(row).slice(0, 300)}`)
  }
  t.ok(gateway.logs.length > 0)
})
