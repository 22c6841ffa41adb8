import { test } from 'node:test'
import { pluginConformance } from 'svc-gateway/testing'
import plugin from '../src/index.js'

// what the gateway relies on: the plugin becomes active, stops without a complaint and starts again
for (const { name, run } of pluginConformance(plugin)) test(name, run)
