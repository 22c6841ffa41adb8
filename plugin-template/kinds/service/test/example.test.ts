import assert from 'node:assert/strict'
import { test } from 'node:test'
import { definePlugin } from 'svc-gateway/plugin'
import { createTestGateway, pluginConformance } from 'svc-gateway/testing'
import plugin, { greeterRef, type Greeter } from '../src/index.js'

for (const { name, run } of pluginConformance(plugin)) test(name, run)

test('another plugin gets the service', async t => {
  let greeter: Greeter | undefined
  const guest = definePlugin({
    name: 'guest',
    kind: 'service',
    apiVersion: 1,
    requires: { greeter: greeterRef },
    register: ctx => { greeter = ctx.services.greeter }
  })
  const gateway = await createTestGateway({ plugins: [plugin, guest], pluginConfig: { [plugin.name]: { greeting: 'Hi' } } })
  t.after(() => gateway.close())
  assert.equal(greeter?.greet('you'), 'Hi, you (1)')
  assert.equal(greeter?.greet('you'), 'Hi, you (2)')
})
