import { Agent, request, type IncomingMessage } from 'node:http'
import t from 'tap'
import { createFakeProviderPlugin } from '../../../../kernel/testing/index.js'
import { AGENT, apiOf, openStream, until } from '../support.js'

const api = apiOf('api-slots', 'api-events')

t.test('a stream of states begins with the present one and tells each once', async t => {
  const gateway = await api(t)
  const { fleet } = gateway.gateway.inference()
  const stream = await openStream(t, gateway, '/api/slots/agent/state/stream')
  t.match(stream.response.headers.get('content-type'), /^text\/event-stream/)
  const present = (await gateway.call('GET', '/api/slots/agent/state')).json
  t.same(present, {
    name: 'agent', state: 'offline', port: 8081, model_id: 'fake-model', backend: 'cpu', message: '', updated_at: present.updated_at
  })
  t.same(await stream.next(), { event: 'state', id: null, data: present }, 'the first frame is the present state')
  await gateway.call('POST', '/api/slots/agent/load')
  const seen: string[] = []
  await stream.until(({ data }) => {
    seen.push(data.state)
    return data.state === 'ready'
  })
  t.same(seen, [...new Set(seen)], 'a state is told once')
  t.equal(seen.at(-1), 'ready')

  const leaver = await openStream(t, gateway, '/api/slots/agent/state/stream')
  await leaver.next()
  t.equal(fleet.feed('agent').size, 2)
  await leaver.close()
  await until(() => fleet.feed('agent').size === 1, 'the source of the one that left is released')
  await gateway.call('DELETE', '/api/slots/agent')
  for (let frame = await stream.next(); frame !== null; frame = await stream.next()) t.equal(frame.event, 'state')
  t.pass('the stream of a deleted slot ends')
})

t.test('a stream of logs goes on with the next engine, without secrets', async t => {
  const gateway = await api(t)
  const { runtime } = gateway
  const logs = async (query = '') => (await gateway.call('GET', `/api/slots/agent/logs${query}`)).json
  t.match(await logs(), { name: 'agent', logs: { length: 0 }, hint: /offline.*svc slot load agent/ })
  const following = await openStream(t, gateway, '/api/slots/agent/logs/stream')
  await gateway.call('POST', '/api/slots/agent/load')
  t.match(await logs(), { logs: { length: 0 }, hint: /anything yet/ })

  runtime.write('loading', 'request: GET /health 127.0.0.1 200', 'Authorization: Bearer sk-secret', 'HF_TOKEN=abc', 'done')
  const quiet = ['loading', 'Authorization: ***REDACTED***', 'HF_TOKEN=***REDACTED***', 'done']
  t.same(await logs(), { name: 'agent', logs: quiet })
  t.same((await logs('?lines=2')).logs, quiet.slice(-2))
  t.same((await logs('?quiet=false&lines=4')).logs[0], 'request: GET /health 127.0.0.1 200')
  for (const line of quiet) t.same(await following.next(), { event: 'message', id: null, data: line }, 'a stream that was there before the engine')

  const late = await openStream(t, gateway, '/api/slots/agent/logs/stream?backfill=1&quiet=0')
  t.match(await late.next(), { data: 'done' })
  runtime.write('GET /health', 'busy')
  t.match(await late.next(), { data: 'GET /health' })
  t.match(await late.next(), { data: 'busy' })
  t.match(await following.next(), { data: 'busy' }, 'without the noise')
  await until(() => runtime.readers === 2, 'both read')
  await late.close()
  await until(() => runtime.readers === 1, 'the log of the one that left is released')

  runtime.lines.length = 0
  await gateway.call('POST', '/api/slots/agent/restart')
  runtime.write('second engine')
  t.match(await following.next(), { data: 'second engine' }, 'the stream goes on with the next engine')

  runtime.logFailure = new Error('journal is gone')
  t.match(await logs(), { logs: { length: 0 }, hint: /cannot be read: journal is gone/ })
  await gateway.call('POST', '/api/slots/agent/restart')
  t.match(await following.next(), { event: 'degraded', data: { message: /agent.*journal is gone/ } })
  runtime.logFailure = null
  await gateway.call('POST', '/api/slots/agent/restart')
  t.match(await following.next(), { event: 'message', data: 'second engine' }, 'and comes back')
  await gateway.call('DELETE', '/api/slots/agent')
  t.equal(await following.next(), null, 'a deleted slot ends it')
  t.equal(runtime.readers, 0)
})

t.test('the log of an engine that still loads, and of one that failed', async t => {
  let open = (): void => {}
  const gate = new Promise<void>(resolve => { open = resolve })
  const gateway = await api(t, {
    onStart: async ({ engine }) => { engine.health(503) },
    svc: 'health_timeout_s = 60\n'
  })
  const { slots } = gateway.gateway.inference()
  const stream = await openStream(t, gateway, '/api/slots/agent/logs/stream')
  gateway.runtime.write('reading tensors')
  void gateway.call('POST', '/api/slots/agent/load').then(open)
  await until(() => slots.status('agent').state === 'warming', 'the engine loads')
  t.match(await stream.next(), { data: 'reading tensors' })
  t.same((await gateway.call('GET', '/api/slots/agent/logs')).json.logs, ['reading tensors'])
  await gateway.runtime.crash('agent')
  await gate
  t.match((await gateway.call('GET', '/api/slots/agent')).json, { state: 'error', metadata: { failure: { log_tail: ['reading tensors'] } } })
  t.same((await gateway.call('GET', '/api/slots/agent/logs')).json.logs, ['reading tensors'], 'its last words are kept')
  const after = await openStream(t, gateway, '/api/slots/agent/logs/stream')
  t.match(await after.next(), { data: 'reading tensors' })
})

t.test('an image pull goes on when its reader leaves', async t => {
  const gateway = await api(t, {
    providers: [createFakeProviderPlugin(), createFakeProviderPlugin({ name: 'bare', image: undefined as never })],
    files: { 'etc/svc/slots/bare.toml': AGENT.replace('fake"', 'bare"').replace('8081', '8082') }
  })
  const { runtime } = gateway
  const status = async () => (await gateway.call('GET', '/api/slots/agent/pull/status')).json
  t.match(await status(), { slot_name: 'agent', image: 'svc-test/fake', state: 'present', error: null })
  runtime.present = false
  t.match(await status(), { state: 'missing' })
  t.match((await gateway.call('GET', '/api/slots/agent')).json, { image_status: 'missing' })
  const idle = await openStream(t, gateway, '/api/slots/agent/pull/stream')
  t.match(await idle.next(), { data: { state: 'missing' } })
  t.equal(await idle.next(), null, 'nothing to wait for')

  const started = await gateway.call('POST', '/api/slots/agent/pull')
  t.equal(started.status, 202)
  t.match(started.json, { resumed: false, slot_name: 'agent', image: 'svc-test/fake', state: 'pulling', layer: 0, total_layers: 0 })
  t.match(gateway.audit()[0], { action: 'slot.pull', target: 'agent', outcome: 'ok' })
  t.match((await gateway.call('POST', '/api/slots/agent/pull')).json, { resumed: true, state: 'pulling' })
  t.match((await gateway.call('GET', '/api/slots/agent')).json, { image_status: 'pulling' })

  const stream = await openStream(t, gateway, '/api/slots/agent/pull/stream')
  const leaver = await openStream(t, gateway, '/api/slots/agent/pull/stream')
  t.match(await stream.next(), { event: 'message', data: { state: 'pulling', layer: 0 } })
  await leaver.next()
  await leaver.close()
  runtime.pulling!.step({ layer: 1, totalLayers: 3, currentBytes: 10, totalBytes: 30, message: '' })
  t.match(await stream.next(), { data: { state: 'pulling', layer: 1, total_layers: 3, current_bytes: 10, total_bytes: 30 } })
  runtime.pulling!.finish()
  t.match(await stream.next(), { data: { state: 'completed' } }, 'one that leaves does not stop the pull')
  t.equal(await stream.next(), null)
  t.match(await status(), { state: 'present' })

  await gateway.call('POST', '/api/slots/agent/pull')
  const failing = await openStream(t, gateway, '/api/slots/agent/pull/stream')
  runtime.pulling!.finish(new Error('no route to registry'))
  t.match(await failing.until(({ data }) => data.state !== 'pulling'), { data: { state: 'failed', error: 'no route to registry' } })
  t.match(await status(), { state: 'failed', error: 'no route to registry' })

  for (const [method, rest] of [['POST', ''], ['GET', '/status'], ['GET', '/stream']] as const) {
    const { status: code, json } = await gateway.call(method, `/api/slots/bare/pull${rest}`)
    t.equal(code, 400)
    t.match(json, { error: { code: 'slot.config_error', message: /does not use a container image/ } }, `${method} ${rest}`)
  }
  t.match((await gateway.call('GET', '/api/slots/bare')).json, { image: null, image_status: 'not-configured', resolved_command: null })
})

t.test('HEAD of a stream answers and ends', async t => {
  const gateway = await api(t)
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  const one = (method: string, path: string): Promise<IncomingMessage> => new Promise((resolve, reject) => {
    request(`${gateway.baseUrl}${path}`, { method, agent }, response => {
      response.resume().on('end', () => resolve(response))
    }).on('error', reject).end()
  })
  for (const path of ['/api/slots/agent/state/stream', '/api/slots/agent/logs/stream', '/api/events/stream']) {
    const { statusCode, headers } = await one('HEAD', path)
    t.equal(statusCode, 200)
    t.match(headers['content-type'], /^text\/event-stream/)
    t.ok(headers['x-request-id'])
  }
  t.equal((await one('GET', '/api/slots')).statusCode, 200, 'the one connection is free again')
  t.equal(gateway.gateway.inference().fleet.feed('agent').size, 0, 'nothing follows on')
})
