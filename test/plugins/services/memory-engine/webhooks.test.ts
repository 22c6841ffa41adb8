import t from 'tap'
import { isPublicAddress } from '../../../../plugins/services/memory-engine/webhooks/target.js'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { openStore } from '../../../../plugins/services/memory-engine/store/open.js'
import { sendToWeb } from '../../../../plugins/services/memory-engine/web-errand.js'
import type { Errand, ErrandAnswer } from '../../../../plugins/services/memory-engine/messages.js'
import { openEngine } from './support.js'

t.test('a webhook may not lead to this machine or a private network, and its secret never comes back', async t => {
  const { call } = openEngine(t)
  await call('PUT', 'b', {})
  const refused = [
    'http://127.0.0.1:1/x', 'http://localhost/x', 'http://[::1]/x', 'http://10.1.2.3/', 'https://192.168.1.1/', 'http://169.254.169.254/latest',
    'http://[::ffff:127.0.0.1]/', 'http://2130706433/', 'http://0x7f.1/', 'http://router.local/', 'http://[fd00::1]/'
  ]
  for (const url of refused) t.match(
    await call('POST', 'b/webhooks', { url }), { status: 400, body: { detail: /private\/loopback\/link-local/ } }, url
  )
  for (const url of ['file:///etc/passwd', 'no url']) t.match(await call('POST', 'b/webhooks', { url }), { status: 400 }, url)
  const { status, body } = await call('POST', 'b/webhooks', {
    url: 'https://example.com/x', secret: 's3cret', event_types: ['retain.completed']
  })
  t.equal(status, 201)
  t.match(body, {
    bank_id: 'b', secret: null, enabled: true, http_config: { method: 'POST', timeout_seconds: 30, headers: {}, params: {} }
  })
  t.match(await call('PATCH', `b/webhooks/${body.id}`, { url: 'http://127.0.0.1/' }), { status: 400 }, 'nor by a change')
  const { body: changed } = await call('PATCH', `b/webhooks/${body.id}`, { enabled: false, secret: 'other' })
  t.match(changed, { url: 'https://example.com/x', enabled: false, secret: null })
  const list = await call('GET', 'b/webhooks')
  t.match(list.body, { items: [{ id: body.id }], total: 1, limit: 100, offset: 0 })
  t.notMatch(JSON.stringify([body, changed, list.body]), /s3cret|other/)
  t.same((await call('GET', `b/webhooks/${body.id}/deliveries`)).body, { items: [], next_cursor: null })
  t.match(await call('POST', 'b/webhooks', { url: 'https://example.com/', event_types: ['nonsense'] }), { status: 422 })
  t.same((await call('DELETE', `b/webhooks/${body.id}`)).body, { success: true, message: null, deleted_count: null })
  t.match(await call('GET', `b/webhooks/${body.id}/deliveries`), { status: 404 })
})

t.test('public addresses are those of the internet and no others', async t => {
  for (const address of ['1.1.1.1', '93.184.216.34', '2606:4700::1111']) t.equal(isPublicAddress(address), true, address)
  for (const address of ['0.0.0.0', '100.64.0.1', '172.16.0.1', '224.0.0.1', '::1', '::ffff:10.0.0.1', 'fe80::1', '2002:7f00:1::', 'x']) t.equal(isPublicAddress(address), false, address)
})

t.test('a retain is announced with a signature, once for each document, and again after a failure', async t => {
  const sent: Array<Extract<Errand, { to: 'web' }>> = []
  const answers: ErrandAnswer[] = [{ status: 204, body: Buffer.from('') }, { status: 500, body: Buffer.from('broken') }]
  const { call } = openEngine(t, {
    run: async errand => {
      if (errand.to !== 'web') throw new Error('not here')
      sent.push(errand)
      return await Promise.resolve(answers[sent.length - 1]!)
    }
  })
  await call('PUT', 'b', {})
  const { body: { id } } = await call('POST', 'b/webhooks', {
    url: 'https://example.com/x', secret: 's3cret', event_types: ['retain.completed'], http_config: { headers: { 'x-own': '1' }, params: { a: 'b' } }
  })
  await call('POST', 'b/webhooks', { url: 'https://example.com/other' })
  await call('POST', 'b/memories', { items: [{ content: 'Hello there.', document_id: 'd', tags: ['t'] }, { content: 'And here.', document_id: 'e' }] })
  const deliveries = async (): Promise<ReadonlyArray<Record<string, unknown>>> => {
    for (;;) {
      const { body: { items } } = await call('GET', `b/webhooks/${id}/deliveries`)
      if (items.length === 2 && items.every(({ attempts }: { attempts: number }) => attempts === 1)) return items
    }
  }
  t.match(await deliveries(), [
    { status: 'pending', next_retry_at: String, last_error: 'HTTP 500', last_response_status: 500, last_response_body: 'broken', event_type: 'retain.completed', webhook_id: id },
    { status: 'delivered', next_retry_at: null, last_response_status: 204, last_error: null }
  ])
  t.equal(sent.length, 2, 'and the other webhook wants other events')
  const [{ url, method, headers, body }] = sent as [typeof sent[0]]
  t.match({ url, method, headers }, { url: 'https://example.com/x?a=b', method: 'POST', headers: { 'x-own': '1', 'content-type': 'application/json' } })
  t.equal(headers['x-hindsight-signature'], `sha256=${createHmac('sha256', 's3cret').update(body).digest('hex')}`)
  t.match(JSON.parse(Buffer.from(body).toString()), { event: 'retain.completed', bank_id: 'b', status: 'completed', data: { document_id: 'd', tags: ['t'] } })
  t.match((await call('GET', `b/webhooks/${id}/deliveries?limit=1`)).body, { items: { length: 1 }, next_cursor: String })
})

t.test('a webhook goes to the address that its name was judged by, and to none that is private', async t => {
  const server = createServer((request, response) => { request.resume().on('end', () => response.writeHead(302, { location: 'http://127.0.0.1/' }).end('x'.repeat(100_000))) })
  t.teardown(() => { server.close() })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const errand = { to: 'web', url: `http://example.com:${port}/x`, method: 'POST', headers: {}, body: Buffer.from('{}') } as const
  const { signal } = new AbortController()
  const asked: string[] = []
  const addressesOf = (host: string): Promise<Array<{ address: string, family: number }>> => {
    asked.push(host)
    return Promise.resolve([{ address: '127.0.0.1', family: 4 }])
  }
  await t.rejects(sendToWeb(errand, signal, { addressesOf, isAllowed: isPublicAddress }), /'example.com' resolves to a private/)
  const mixed = (): Promise<Array<{ address: string, family: number }>> => Promise.resolve([{ address: '1.1.1.1', family: 4 }, { address: '10.0.0.1', family: 4 }])
  await t.rejects(sendToWeb(errand, signal, { addressesOf: mixed, isAllowed: isPublicAddress }), /resolves to a private/, 'one private address is enough')
  await t.rejects(sendToWeb({ ...errand, url: 'http://[::1]/' }, signal), /targets a private/)
  asked.length = 0
  const answer = await sendToWeb(errand, signal, { addressesOf, isAllowed: () => true })
  t.same([answer.status, answer.body.length, asked], [302, 64 * 1024, ['example.com']], 'a redirect is an answer, and its name is looked up once')
})

t.test('what was sent is not sent again where that cannot be written down', async t => {
  const logs: string[] = []
  let sent = 0
  const { call, path } = openEngine(t, {
    log: (_level, message) => { logs.push(message) }, run: () => {
      sent++
      return Promise.resolve({ status: 200, body: Buffer.alloc(0) })
    }
  })
  await call('PUT', 'b', {})
  const { body: { id } } = await call('POST', 'b/webhooks', { url: 'https://example.com/x', event_types: ['retain.completed'] })
  const store = openStore(path)
  t.teardown(() => store.close())
  store.exec(`CREATE TRIGGER full BEFORE UPDATE ON webhook_deliveries BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END`)
  const retain = (n: number): Promise<unknown> => call('POST', 'b/memories', { items: [{ content: `Note ${n}.`, document_id: `d${n}` }] })
  await retain(0)
  while (logs.length === 0) await call('GET', '/version')
  t.match(logs[0], /could not be written down/)
  for (const n of [1, 2, 3]) await retain(n)
  t.equal(sent, 1)
  store.exec('DROP TRIGGER full')
  await retain(4)
  for (let isOver = false; !isOver;) {
    const { items } = (await call('GET', `b/webhooks/${id}/deliveries`)).body
    isOver = items.length === 5 && items.every(({ status }: { status: string }) => status === 'delivered')
  }
  t.equal(sent, 5)
})
