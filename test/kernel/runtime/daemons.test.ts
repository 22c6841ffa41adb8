import t, { type Test } from 'tap'
import type { DaemonSpec } from '../../../kernel/contract/index.js'
import { createEventBus } from '../../../kernel/events/event-bus.js'
import { Daemons } from '../../../kernel/runtime/programs/daemons.js'
import { FakeClock, FakeEngineRuntime, settle } from '../../../kernel/testing/index.js'
import { recordingLogger, type RecordingLogger } from './support.js'

const never = new AbortController().signal
const spec: DaemonSpec = {
  id: 'kitchen', host: '127.0.0.1', port: 9, env: {}, form: { kind: 'container', image: 'x/kitchen:1', command: null, mounts: [] }
}

/** Once its image is removed, a pull goes on until its signal aborts. */
class SlowRegistry extends FakeEngineRuntime {
  hasImage = true
  readonly pulls: AbortSignal[] = []

  override imagePresent (): Promise<boolean> { return Promise.resolve(this.hasImage) }

  override pull (_image?: string, _digest?: string | null, _onProgress?: unknown, signal: AbortSignal = never): Promise<void> {
    this.pulls.push(signal)
    return new Promise((_, reject) => { signal.addEventListener('abort', () => reject(signal.reason as Error)) })
  }
}

interface Restarting {
  readonly daemons: Daemons
  readonly runtime: SlowRegistry
  readonly log: RecordingLogger
  readonly clock: FakeClock
}

/** A program that ended by itself, and whose restart pulls its image. */
async function restarting (t: Test): Promise<Restarting> {
  const clock = new FakeClock()
  const runtime = new SlowRegistry()
  t.teardown(() => runtime.destroy())
  const log = recordingLogger()
  const daemons = new Daemons({ runtime, instance: 'test', clock, events: createEventBus({ clock }), log, clean: text => text })
  await daemons.run(spec, { signal: never })
  runtime.hasImage = false
  await runtime.stop(runtime.started[0]!.id)
  await clock.advance(1)
  while (runtime.pulls.length === 0) await settle()
  return { daemons, runtime, log, clock }
}

t.test('a gateway that stops ends the pull of a program that is being started again', async t => {
  const { daemons, runtime } = await restarting(t)
  await daemons.close(() => true)
  t.ok(runtime.pulls[0]!.aborted)
  t.equal(runtime.running, 0)
})

t.test('a program that is ended while its restart pulls is gone at once and stays so', async t => {
  const { daemons, runtime, log, clock } = await restarting(t)
  await daemons.end('kitchen')
  await clock.advance(600_000)
  t.match(daemons.status('kitchen'), { state: 'stopped', failures: 0, problem: null })
  t.equal(runtime.pulls.length, 1)
  t.notOk(log.lines.some(line => line.includes('cannot be started again')))
})

t.test('a program that is run anew while its restart pulls does not wait for that pull', async t => {
  const { daemons, runtime } = await restarting(t)
  runtime.hasImage = true
  await daemons.run({ ...spec, port: 10 }, { signal: never })
  t.equal(daemons.status('kitchen').state, 'running')
  t.equal(runtime.running, 1)
})
