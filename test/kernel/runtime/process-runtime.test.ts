import { openProcessRuntime } from '../../../kernel/runtime/process-runtime.js'
import { RuntimeSet } from '../../../kernel/runtime/runtime-set.js'
import { FakeEngineRuntime, runtimeConformance, tinyProcess } from '../../../kernel/testing/index.js'
import { freePort } from '../../ports.js'
import { openShed } from './fixtures/shed.js'
import { realClock, recordingLogger } from './support.js'
import t from 'tap'

for (const beside of [false, true]) {
  t.test(beside ? 'conformance beside another driver' : 'conformance', async t => {
    const stateDir = t.testdir()
    const checks = runtimeConformance({
      open: async () => {
        const processes = await openProcessRuntime({ stateDir, env: process.env, clock: realClock, log: recordingLogger(), reason: 'test' })
        return beside ? new RuntimeSet([new FakeEngineRuntime(), processes]) : processes
      },
      spec: tinyProcess,
      port: freePort
    })
    for (const { name, run } of checks) t.test(name, run)
  })
}

t.test('conformance of a driver that a plugin brings', async t => {
  const folder = t.testdir()
  const checks = runtimeConformance({ open: () => openShed(folder), spec: tinyProcess, port: freePort })
  for (const { name, run } of checks) t.test(name, run)
})
