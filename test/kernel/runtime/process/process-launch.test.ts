import { once } from 'node:events'
import { stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { ContainerRuntime, EngineSpec, ProcessForm } from '../../../../kernel/contract/provider/engine-runtime.js'
import { childEnvironment } from '../../../../kernel/runtime/process/process-env.js'
import { exitCodeOf } from '../../../../kernel/runtime/process/process-engine.js'
import { openProcessRuntime } from '../../../../kernel/runtime/process/process-runtime.js'
import { freePort } from '../../../ports.js'
import { get } from '../../../../kernel/testing/runtime-bench.js'
import { collect, eventually, realClock, recordingLogger } from '../support.js'
import { tinyProcess } from '../../../../kernel/testing/tiny-engine.js'

const quiet = new AbortController().signal

async function open (t: Test, env: Record<string, string> = {}, stateDir = t.testdir()): Promise<ContainerRuntime> {
  const runtime = await openProcessRuntime({
    stateDir, env: { PATH: process.env.PATH, ...env }, clock: realClock, log: recordingLogger(), reason: 'test'
  })
  t.teardown(async () => {
    for (const { id } of await runtime.list({})) await runtime.remove(id)
    await runtime.close()
  })
  return runtime
}

type Spec = EngineSpec & { readonly port: number }

async function spec (form: Partial<ProcessForm>, env: Record<string, string> = {}): Promise<Spec> {
  const port = await freePort()
  const tiny = tinyProcess({ name: 'one', port, labels: {}, env })
  return { ...tiny, port, form: { ...tiny.form, ...form } as ProcessForm }
}

t.test('the environment is an allow-list, and the engine\'s own wins', async t => {
  const gateway = {
    PATH: '/bin', HOME: '/home/me', LC_NUMERIC: 'C', NODE_OPTIONS: '--inspect', AWS_SECRET: 'x', OPENAI_API_KEY: 'y', TZ: undefined,
    SVC_ENGINE_ID: 'outer', LD_PRELOAD: '/evil.so'
  }
  t.same(childEnvironment(gateway, { PATH: '/opt/bin', MODEL: 'm', SVC_ENGINE_ID: 'mine' }, 'proc-1'),
    { PATH: '/opt/bin', HOME: '/home/me', LC_NUMERIC: 'C', MODEL: 'm', SVC_ENGINE_ID: 'proc-1' })
  const runtime = await open(t, { HOME: '/nowhere', OPENAI_API_KEY: 'y' })
  const one = await spec({}, { HF_TOKEN: 'given' })
  const id = await runtime.create(one, quiet)
  await runtime.start(id, quiet)
  const env = await eventually('it serves', () => get({ host: '127.0.0.1', port: one.port }, '/env')) as Record<string, string>
  t.match(env, { HOME: '/nowhere', HF_TOKEN: 'given', SVC_ENGINE_ID: id })
  t.notOk('OPENAI_API_KEY' in env)
})

t.test('what cannot be run says why', async t => {
  const folder = t.testdir({ 'engine.sh': '#!/bin/sh\n' })
  const runtime = await open(t, {}, folder)
  const cases: readonly (readonly [Partial<ProcessForm>, RegExp])[] = [
    [{ command: join(folder, 'absent') }, /absent: there is no such program or folder; install it/],
    [{ command: join(folder, 'engine.sh') }, /engine\.sh: it may not be executed/],
    [{ workingDir: join(folder, 'nowhere') }, /nowhere: there is no such program or folder/]
  ]
  for (const [form, message] of cases) {
    const id = await runtime.create(await spec(form), quiet)
    await t.rejects(runtime.start(id, quiet), { code: 'runtime.failed', message })
    t.match(await runtime.inspect(id), { state: 'created', startedAt: null })
    await runtime.remove(id)
  }
  const image = { ...await spec({}), form: { kind: 'container' } } as EngineSpec
  await t.rejects(runtime.create(image, quiet), { code: 'runtime.failed', message: /needs a container.*\[runtime\] driver/ })
})

t.test('an engine runs in its working folder', async t => {
  const folder = t.testdir({ 'hello.txt': 'hello' })
  const runtime = await open(t, {}, folder)
  const id = await runtime.create(await spec({ workingDir: folder, args: ['-p', 'require("fs").readFileSync("hello.txt", "utf8")'] }), quiet)
  await runtime.start(id, quiet)
  t.same(await collect(runtime.logs(id, { tail: 5, follow: true, signal: quiet })), ['hello'])
})

t.test('the address that is bound is the one that is checked', async t => {
  const runtime = await open(t)
  const squatter = createServer().listen(0, '127.0.0.2')
  await once(squatter, 'listening')
  t.teardown(() => squatter.close())
  const { port } = squatter.address() as { port: number }
  const other = { ...await spec({ bindHost: '127.0.0.1' }), port }
  const id = await runtime.create({ ...other, env: { ...other.env, PORT: String(port) } }, quiet)
  await runtime.start(id, quiet)
  t.pass('the same port on another address is free')
  await runtime.remove(id)
  for (const bindHost of ['127.0.0.2', '0.0.0.0']) {
    const taken = await runtime.create({ ...await spec({ bindHost }), port }, quiet)
    await t.rejects(runtime.start(taken, quiet), { code: 'slot.port_conflict', details: { host: bindHost, port } })
  }
  const elsewhere = await runtime.create(await spec({ bindHost: '192.0.2.1' }), quiet)
  await t.rejects(runtime.start(elsewhere, quiet), { code: 'runtime.failed', message: /publish_host/ })
})

t.test('exit codes are those of a shell', async t => {
  t.same([exitCodeOf(0, null), exitCodeOf(3, null), exitCodeOf(null, 'SIGKILL'), exitCodeOf(null, 'SIGTERM')], [0, 3, 137, 143])
  const runtime = await open(t)
  const one = await spec({})
  const id = await runtime.create(one, quiet)
  await runtime.start(id, quiet)
  const { pid } = await eventually('it serves', () => get({ host: '127.0.0.1', port: one.port }, '/pid')) as { pid: number }
  process.kill(pid, 'SIGSEGV')
  await eventually('it ended', async () => (await runtime.inspect(id))?.state === 'exited')
  t.match(await runtime.inspect(id), { exitCode: 139 })
  t.same(await runtime.imagePresent('any', null, quiet), true)
})

t.test('the output of a running engine is bounded, and a follower sees all of it', async t => {
  const stateDir = t.testdir()
  const runtime = await open(t, {}, stateDir)
  const one = await spec({})
  const id = await runtime.create(one, quiet)
  await runtime.start(id, quiet)
  const address = { host: '127.0.0.1', port: one.port }
  await eventually('it serves', () => get(address, '/env'))
  await get(address, '/say?text=first')
  let seen = 0
  const following = (async () => {
    for await (const line of runtime.logs(id, { tail: 1, follow: true, signal: quiet })) seen += line.length
  })()
  await eventually('it follows', () => seen === 'first'.length)
  const file = join(stateDir, 'runtime', id, 'output.log')
  await get(address, '/say?text=x&times=4000000')
  await eventually('the follower keeps up', () => seen >= 3_900_000)
  await get(address, '/say?text=x&times=4000000')
  await eventually('it is cut', async () => (await stat(file)).size < 1000)
  t.ok((await stat(`${file}.1`)).size <= 5 * 1024 * 1024 + 100)
  await runtime.stop(id, 5)
  await following
  t.equal(seen, 'first'.length + 8_000_000 + 'asked to stop'.length)
})

t.test('a state folder that cannot be written', async t => {
  const file = join(t.testdir(), 'state')
  await writeFile(file, '')
  await t.rejects(openProcessRuntime({ stateDir: file, env: {}, clock: realClock, log: recordingLogger(), reason: 'test' }))
})
