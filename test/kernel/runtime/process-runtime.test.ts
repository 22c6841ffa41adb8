import { openProcessRuntime } from '../../../kernel/runtime/process-runtime.js'
import { runtimeConformance } from './conformance.js'
import { realClock, recordingLogger } from './support.js'
import { tinyProcess } from './tiny-process.js'
import t from 'tap'

t.test('conformance', async t => {
  const stateDir = t.testdir()
  runtimeConformance(t, {
    open: () => openProcessRuntime({ stateDir, env: process.env, clock: realClock, log: recordingLogger(), reason: 'test' }),
    spec: tinyProcess
  })
})
