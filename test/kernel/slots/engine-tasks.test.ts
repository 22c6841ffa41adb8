import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { EngineTask } from '../../../kernel/contract/index.js'
import { LABEL_INSTANCE, LABEL_TASK, type ContainerRuntime } from '../../../kernel/contract/provider/engine-runtime.js'
import { openProcessRuntime } from '../../../kernel/runtime/process/process-runtime.js'
import { createFakeProvider, createTestGateway, type TestGateway } from '../../../kernel/testing/index.js'
import { openDocker, testEngine } from '../runtime/engines.js'
import { realClock, recordingLogger } from '../runtime/support.js'

t.setTimeout(300_000)

const PROGRAM = `
  require('fs').writeFileSync(process.env.STORE + '/there', 'kept')
  console.log('one')
  console.error('two')
  if (process.env.MODE === 'stay') setInterval(() => {}, 1000)
  else process.exitCode = 3`

function taskFor (image: string, store: string, mode: 'end' | 'stay'): EngineTask {
  return {
    purpose: 'test-task',
    provider: createFakeProvider({ name: 'tasks-fake', devices: ['cpu'], image }),
    container: {
      entrypoint: ['node'], command: ['-e', PROGRAM], env: { STORE: '/store', MODE: mode }, mounts: [{ source: store, target: '/store', readOnly: false }]
    },
    processes: [{ command: 'node', args: ['-e', PROGRAM], env: { STORE: store, MODE: mode }, label: 'node' }]
  }
}

interface Stand {
  readonly image: string
  readonly open: (stateDir: string) => Promise<ContainerRuntime>
}

async function standOf (t: Test, form: 'process' | 'docker' | 'podman'): Promise<Stand | null> {
  if (form === 'process') {
    return { image: '', open: stateDir => openProcessRuntime({ stateDir, env: process.env, clock: realClock, log: recordingLogger(), reason: 'test' }) }
  }
  const engine = await testEngine(t, form)
  return engine === null ? null : { image: engine.nodeImage, open: () => openDocker(engine.host) }
}

for (const form of ['process', 'docker', 'podman'] as const) {
  t.test(`what an engine runs beside its slot ends as told, by way of ${form}`, async t => {
    const stand = await standOf(t, form)
    if (stand === null) return
    const home = await mkdtemp(join(tmpdir(), 'svc-tasks-'))
    t.teardown(() => rm(home, { recursive: true, force: true }))
    const store = t.testdir({})
    const started = async (): Promise<TestGateway & { readonly runtime: ContainerRuntime }> => {
      const runtime = await stand.open(join(home, 'var/lib/svc'))
      const gateway = await createTestGateway({ home, runtime })
      t.teardown(() => gateway.close())
      return Object.assign(gateway, { runtime })
    }
    const first = await started()
    const { instance } = first.gateway.kernel()
    const mine = { [LABEL_INSTANCE]: instance }
    const { tasks } = first.gateway.inference()
    const run = (mode: 'end' | 'stay', signal: AbortSignal, onLine: (line: string) => void): Promise<number | null> =>
      tasks.run(taskFor(stand.image, store, mode), { signal, onLine })

    const lines: string[] = []
    t.equal(await run('end', new AbortController().signal, line => lines.push(line)), 3)
    t.same(lines.sort(), ['one', 'two'])
    t.ok(existsSync(join(store, 'there')), 'it writes where it was told to')
    t.same(await first.runtime.list(mine), [], 'nothing of it stays')

    const controller = new AbortController()
    const reason = new Error('enough')
    let seen: readonly unknown[] = []
    const stopped = run('stay', controller.signal, line => {
      if (line !== 'two') return
      void first.runtime.list(mine).then(found => {
        seen = found
        controller.abort(reason)
      })
    })
    await t.rejects(stopped, { message: 'enough' })
    t.match(seen, [{ labels: { [LABEL_TASK]: 'test-task' }, state: 'running', address: null }])
    t.same(await first.runtime.list(mine), [])
    await t.rejects(run('end', AbortSignal.abort(reason), () => {}), { message: 'enough' })

    // what a gateway leaves that is killed: its program runs, and nobody listens
    let left: string | null = null
    const { runtime } = first
    const remove = runtime.remove.bind(runtime)
    const stop = runtime.stop.bind(runtime)
    Object.assign(runtime, { remove: () => Promise.resolve(), stop: () => Promise.resolve() })
    const killed = new AbortController()
    const orphaned = run('stay', killed.signal, line => { if (line === 'two') killed.abort(reason) })
    await t.rejects(orphaned)
    left = (await runtime.list(mine))[0]?.id ?? null
    Object.assign(runtime, { remove, stop })
    t.match(await runtime.inspect(left!), { state: 'running' })
    await first.close()
    const second = await started()
    t.same(await second.runtime.list(mine), [], 'the next one removes it')
  })
}
