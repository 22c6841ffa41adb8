import type { ContainerRuntime } from '../../../../kernel/contract/index.js'
import { openProcessRuntime } from '../../../../kernel/runtime/process/process-runtime.js'
import { RuntimeSet } from '../../../../kernel/runtime/runtime-set.js'
import { FakeEngineRuntime, runtimeConformance, tinyProcess } from '../../../../kernel/testing/index.js'
import { freePort } from '../../../ports.js'
import { openShed } from '../fixtures/shed.js'
import { realClock, recordingLogger } from '../support.js'
import t from 'tap'

for (const beside of [false, true]) {
  t.test(beside ? 'the driver of processes conforms, beside another one' : 'the driver of processes conforms', async t => {
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

t.test('a stop that waits when the driver is closed says that the gateway stops, not that the engine cannot be killed', async t => {
  const runtime = await openProcessRuntime({ stateDir: t.testdir(), env: process.env, clock: realClock, log: recordingLogger(), reason: 'test' })
  const { signal } = new AbortController()
  const port = await freePort()
  const id = await runtime.create(tinyProcess({ name: 'deaf', port, labels: {}, env: { STUBBORN: '1' } }), signal)
  await runtime.start(id, signal)
  const lines = runtime.logs(id, { tail: 10, follow: true, signal })[Symbol.asyncIterator]()
  t.match(await lines.next(), { value: 'ready' })
  const { pid } = await (await fetch(`http://127.0.0.1:${port}/pid`)).json() as { pid: number }
  t.teardown(() => process.kill(pid, 'SIGKILL'))
  const stopping = runtime.stop(id, 60)
  t.match(await lines.next(), { value: 'asked to stop' })
  await runtime.close()
  await t.rejects(stopping, { code: 'gateway.stopping', message: /stopped before engine deaf had exited/ })
  await t.rejects(runtime.remove(id), { code: 'gateway.stopping' })
})

t.test('conformance of a driver that a plugin brings', async t => {
  const folder = t.testdir()
  const checks = runtimeConformance({ open: () => openShed(folder), spec: tinyProcess, port: freePort })
  for (const { name, run } of checks) t.test(name, run)
})

t.test('a driver that cannot know whether a port is free passes without the claim that it says so beforehand', async t => {
  const folder = t.testdir()
  const open = async (): Promise<ContainerRuntime> => {
    const runtime: ContainerRuntime = await openShed(folder)
    // its own start goes on looking
    return new Proxy(runtime, {
      get: (driver, key) => {
        const value: unknown = key === 'assertPortFree' ? undefined : Reflect.get(driver, key, driver)
        return typeof value === 'function' ? value.bind(driver) as unknown : value
      }
    })
  }
  const checks = runtimeConformance({ open, spec: tinyProcess, port: freePort }).filter(({ name }) => name.includes(' port '))
  t.ok(checks.length > 1)
  for (const { name, run } of checks) t.test(name, run)
})
