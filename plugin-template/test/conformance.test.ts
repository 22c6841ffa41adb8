import { test } from 'node:test'
import { pluginConformance, providerConformance } from 'svc-gateway/testing'
import plugin, { provider } from '../src/index.js'

// what the gateway relies on; needs no engine
for (const { name, run } of [...providerConformance(provider), ...pluginConformance(plugin)]) test(name, run)
