import assert from 'node:assert/strict'
import { test } from 'node:test'
import { core, definePlugin, type ToolCatalogue } from 'svc-gateway/plugin'
import { createTestGateway, pluginConformance } from 'svc-gateway/testing'
import plugin from '../src/index.js'

// what the gateway relies on: the plugin becomes active, stops without a complaint and starts again
for (const { name, run } of pluginConformance(plugin)) test(name, run)

test('an agent calls the tool', async t => {
  let tools: ToolCatalogue | undefined
  const agent = definePlugin({
    name: 'agent', kind: 'service', apiVersion: 1, requires: { tools: core.tools }, register: ctx => { tools = ctx.services.tools }
  })
  const gateway = await createTestGateway({
    plugins: [plugin, agent], files: { 'etc/svc/slots/chat.toml': 'type = "llm"\nprovider = "none"\nenabled = false\n' }
  })
  t.after(() => gateway.close())
  const call = (slot: string) => tools!.call('example', 'slot_state', { slot }, { actor: 'mcp:test', agent: null, signal: AbortSignal.timeout(20_000) })
  const answer = await call('chat')
  assert.ok(answer.kind === 'done')
  assert.deepEqual(answer.value, { slot: 'chat', state: 'offline', message: '', inFlight: 0 })
  const failed = await call('nothing')
  assert.ok(failed.kind === 'failed')
  assert.equal(failed.error.code, 'slot.not_found')
})
