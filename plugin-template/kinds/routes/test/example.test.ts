import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestGateway, FakeClock, pluginConformance } from 'svc-gateway/testing'
import plugin from '../src/index.js'

for (const { name, run } of pluginConformance(plugin)) test(name, run)

test('a note is kept, read again, and reminded of', async t => {
  const clock = new FakeClock()
  const gateway = await createTestGateway({ plugins: [plugin], clock, pluginConfig: { [plugin.name]: { remind_after_s: 60 } } })
  t.after(() => gateway.close())
  const put = await gateway.fetch('/api/example/milk', {
    method: 'PUT', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ text: 'buy some' })
  })
  assert.equal(put.status, 200)
  assert.deepEqual(await (await gateway.fetch('/api/example/milk')).json(), await put.json())
  await clock.advance(60_000)
  const { events } = gateway.gateway.kernel().events.list({ type: 'example.*' })
  assert.deepEqual(events.map(event => event.type), ['example.kept', 'example.reminder'])
})

test('what is wrong is said', async t => {
  const gateway = await createTestGateway({ plugins: [plugin] })
  t.after(() => gateway.close())
  assert.equal((await gateway.fetch('/api/example/nothing')).status, 404)
  const bad = await gateway.fetch('/api/example/milk', { method: 'PUT', headers: { 'content-type': 'application/json' }, body: '{}' })
  assert.equal(bad.status, 400)
})
