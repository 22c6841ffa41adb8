import { openProcessRuntime } from '../../../kernel/runtime/process-runtime.js'
import { RuntimeSet } from '../../../kernel/runtime/runtime-set.js'
import { FakeEngineRuntime } from '../../../kernel/testing/index.js'
import { runtimeConformance } from './conformance.js'
import { realClock, recordingLogger } from './support.js'
import { tinyProcess } from './tiny-process.js'
import t from 'tap'

for (const beside of [false, true]) {
  t.test(beside ? 'conformance beside another driver' : 'conformance', async t => {
    const stateDir = t.testdir()
    runtimeConformance(t, {
      open: async () => {
        const processes = await openProcessRuntime({ stateDir, env: process.env, clock: realClock, log: recordingLogger(), reason: 'test' })
        return beside ? new RuntimeSet([new FakeEngineRuntime(), processes]) : processes
      },
      spec: tinyProcess
    })
  })
}
