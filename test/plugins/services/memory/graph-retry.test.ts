import t from 'tap'
import { core, definePlugin, type ConfigService } from '../../../../kernel/contract/index.js'
import { graphStatus } from '../../../../plugins/api/memory/graph-status.js'
import { memoryRef, type MemoryService } from '../../../../plugins/services/memory/ref.js'
import { form, zipInMemory } from '../memory-engine/models-support.js'
import { fakeHindsight } from './fake-hindsight.js'
import { memoryHost } from './host.js'

t.test('all failed operations are retried, in every bank, and the status counts every bank', async t => {
  const fake = await fakeHindsight(t)
  const host = await memoryHost(t, { url: fake.url })
  for (let n = 0; n < 450; n++) {
    fake.bank(`b${n}`)
    fake.failed.set(`b${n}`, [])
  }
  fake.failed.set('b3', Array.from({ length: 250 }, (_, n) => `op-${n}`))
  fake.failed.set('b449', ['op-last'])
  const { status, json } = await host.call('POST', '/api/memory/graph/retry')
  t.equal(status, 200)
  t.match(json, { queued: 251, skipped: 0, banks: { b3: { queued: 250, skipped: 0, failed: 0 }, b449: { queued: 1 } } })
  t.same(Object.keys(json.banks), ['b3', 'b449'])
  t.same([...fake.failed.values()].flat(), [])
  t.match(await host.audit(), [{ action: 'memory.graph.retry_failed', outcome: 'ok', after: { queued: 251, skipped: 0 } }])
  t.match((await host.call('GET', '/api/memory/graph')).json, { errors: 900, in_flight: 450, builds_ok: 1350 })

  fake.instead.set('/v1/default/banks/b9/operations', (_request, response) => { response.writeHead(500).end('{"detail":"down"}') })
  fake.failed.set('b3', ['op-1'])
  t.match((await host.call('POST', '/api/memory/graph/retry')).json.error, { code: 'memory.engine_error' })
  const [row] = await host.audit()
  t.match(row, { action: 'memory.graph.retry_failed', outcome: 'error', after: { queued: 1, skipped: 0 } }, 'what was done until then is told')
})

t.test('a status of very many banks counts some of them and says so, and one that takes too long says that', async t => {
  const fake = await fakeHindsight(t)
  let services: { readonly config: ConfigService, readonly memory: MemoryService }
  const looks = definePlugin({
    name: 'looks', kind: 'service', apiVersion: 1, requires: { config: core.config, memory: memoryRef },
    register: ctx => { services = ctx.services }
  })
  const host = await memoryHost(t, { url: fake.url, plugins: [looks] })
  fake.bank('b')
  t.match((await host.call('GET', '/api/memory/graph')).json, { errors: 2, banks: 1, banks_counted: 1, last_error: null })
  for (let n = 0; n < 1_010; n++) fake.bank(`b${n}`)
  t.match((await host.call('GET', '/api/memory/graph')).json, { errors: 2_000, banks: 1_011, banks_counted: 1_000, last_error: null })

  fake.instead.set('/v1/default/banks/b/stats', () => {
    late.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError'))
  })
  const late = new AbortController()
  t.match(await graphStatus(services!.config, services!.memory, late.signal), {
    enabled: false, errors: 0, banks: 0, banks_counted: 0, last_error: 'the memory engine did not say in time what it did'
  })
  const left = new AbortController()
  fake.instead.set('/v1/default/banks/b/stats', () => { left.abort(new Error('the client left')) })
  await t.rejects(graphStatus(services!.config, services!.memory, left.signal), /the client left/)
})

t.test('a bank that moves to the front of the list while that is read is not left out, and a list that never rests ends', async t => {
  const fake = await fakeHindsight(t)
  const host = await memoryHost(t, { url: fake.url })
  for (let n = 0; n < 250; n++) {
    fake.bank(`b${n}`)
    fake.failed.set(`b${n}`, n === 249 ? ['op-last'] : [])
  }
  const page = (offset: number): string => `/v1/default/banks?limit=100&offset=${offset}`
  const toFront = (id: string): void => {
    const others = [...fake.banks].filter(([other]) => other !== id)
    const bank = fake.bank(id)
    fake.banks.clear()
    for (const [name, its] of [[id, bank], ...others] as const) fake.banks.set(name, its)
  }
  fake.arriving.set(page(100), () => {
    fake.arriving.clear()
    toFront('b249')
  })
  t.match((await host.call('POST', '/api/memory/graph/retry')).json, { queued: 1, banks: { b249: { queued: 1 } } })

  let made = 0
  fake.arriving.set(page(0), () => {
    toFront(`new${made++}`)
    fake.failed.set(`new${made - 1}`, [])
  })
  t.match((await host.call('POST', '/api/memory/graph/retry')).json, { queued: 0, banks: {} })
  t.ok(made > 1 && made < 10, `it was read ${made} times`)
})

t.test('a retry that breaks off in a bank tells what was done there', async t => {
  const fake = await fakeHindsight(t)
  const host = await memoryHost(t, { url: fake.url })
  fake.bank('b')
  fake.failed.set('b', ['op-1', 'op-2', 'op-3'])
  fake.instead.set('/v1/default/banks/b/operations/op-3/retry', request => { request.socket.destroy() })
  t.match((await host.call('POST', '/api/memory/graph/retry')).json.error, { code: 'memory.engine_unreachable' })
  t.same(fake.failed.get('b'), ['op-3'])
  t.match(await host.audit(), [{ action: 'memory.graph.retry_failed', outcome: 'error', after: { queued: 2, skipped: 0 } }])
})

t.test('a bank that is deleted after the banks were listed is passed over, in a retry and in the status', async t => {
  const fake = await fakeHindsight(t)
  const host = await memoryHost(t, { url: fake.url })
  for (const bank of ['gone', 'kept']) {
    fake.bank(bank)
    fake.failed.set(bank, ['op'])
  }
  for (const list of ['stats', 'operations']) {
    fake.instead.set(`/v1/default/banks/gone/${list}`, (_request, response) => { response.writeHead(404).end(`{"detail":"Bank 'gone' not found"}`) })
  }
  t.match((await host.call('GET', '/api/memory/graph')).json, { errors: 2, banks: 2, last_error: null })
  const { status, json } = await host.call('POST', '/api/memory/graph/retry')
  t.equal(status, 200)
  t.same(json, { queued: 1, skipped: 0, banks: { kept: { queued: 1, skipped: 0, failed: 0 } } })
})

t.test('the embedded engine retries more failed operations than one of its lists has', async t => {
  const host = await memoryHost(t)
  const wire = '/api/memory/hindsight/v1/default/banks/b'
  await host.call('PUT', wire, {})
  const folders = Array.from({ length: 33 }, (_, n) => ({ id: `f${n}`, kind: 'folder', name: 'F', parent_id: n === 0 ? null : `f${n - 1}` }))
  const zip = zipInMemory()
  const manifest = { schema_version: 1, source_bank_id: 'x', archive_type: 'bank' }
  for (const [name, value] of Object.entries({ 'manifest.json': manifest, 'knowledge_pages.json': folders })) {
    zip.add(name, Buffer.from(JSON.stringify(value)))
  }
  const [body, headers] = form('file', 'a.zip', zip.end())
  for (let n = 0; n < 130; n++) {
    t.equal((await host.fetch(`${wire}/transfer/import?mode=merge`, { method: 'POST', headers, body: new Uint8Array(body) })).status, 202)
  }
  await host.until(`${wire}/operations?status=failed`, ({ total }) => total === 130)
  const { json } = await host.call('POST', '/api/memory/graph/retry')
  t.match(json, { queued: 130, skipped: 0, banks: { b: { queued: 130, failed: 0 } } })
})
