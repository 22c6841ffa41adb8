import assert from 'node:assert/strict'
import { API_VERSION, isPlugin, type AnyPlugin } from '../contract/index.js'
import { FakeEngineRuntime } from './fake-engine-runtime.js'
import type { ConformanceCheck } from './provider-conformance.js'
import { createTestGateway, type TestGatewayOptions } from './test-gateway.js'

export interface PluginConformanceOptions {
  /** `[plugins.config.<name>]` to run with, when the defaults are not enough. */
  readonly config?: Readonly<Record<string, unknown>>
  /** Plugins that provide what this one requires. */
  readonly beside?: readonly AnyPlugin[]
}

/** What every plugin must keep to, checked in a whole gateway. */
export function pluginConformance (plugin: AnyPlugin, options: PluginConformanceOptions = {}): readonly ConformanceCheck[] {
  const gatewayOptions = (): TestGatewayOptions => ({
    plugins: [plugin, ...options.beside ?? []],
    pluginConfig: options.config === undefined ? {} : { [plugin.name]: options.config },
    runtime: new FakeEngineRuntime()
  })
  return [
    {
      name: 'is made by definePlugin for this version of the contract',
      run: () => {
        assert.ok(isPlugin(plugin))
        assert.equal(plugin.apiVersion, API_VERSION)
      }
    },
    {
      name: 'becomes active in a gateway, and stops without a complaint',
      run: async () => {
        const gateway = await createTestGateway(gatewayOptions())
        try {
          const report = gateway.gateway.report().find(candidate => candidate.name === plugin.name)
          assert.equal(report?.state, 'active', report?.message ?? 'it is not in the report')
        } finally {
          await gateway.close()
        }
        const complaints = gateway.logs.filter(line => line.level === 'error').map(line => line.message)
        assert.deepEqual(complaints, [], 'nothing was logged as an error')
      }
    },
    {
      name: 'can be started again after a stop: it keeps nothing in its module',
      run: async () => {
        for (let i = 0; i < 2; i++) {
          const gateway = await createTestGateway(gatewayOptions())
          const state = gateway.gateway.report().find(candidate => candidate.name === plugin.name)?.state
          await gateway.close()
          assert.equal(state, 'active')
        }
      }
    }
  ]
}
