import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import type { ContainerRuntime } from '../../../kernel/contract/provider/engine-runtime.js'
import { connectDocker } from '../../../kernel/runtime/docker/docker-connect.js'
import type { DriverSetting } from '../../../kernel/runtime/runtime-candidates.js'
import { endFormerEngines } from '../../../kernel/runtime/former-engines.js'
import { selectRuntime } from '../../../kernel/runtime/select-runtime.js'
import { FakeDocker, json, type FakeRoute } from './docker/fake-docker.js'
import { freePort } from '../../ports.js'
import { realClock, recordingLogger } from './support.js'
import { messageOf } from '../../../kernel/contract/index.js'
import { FakeClock } from '../../../kernel/testing/fake-clock.js'
import { tinyProcess } from '../../../kernel/testing/tiny-engine.js'

interface Wish {
  readonly driver: DriverSetting
  readonly env: Record<string, string>
  readonly patienceS?: number
}

async function select (t: Test, { driver, env, patienceS = 60 }: Wish): Promise<ContainerRuntime> {
  const settings = { driver, connect_timeout_s: patienceS }
  const stateDir = t.testdir()
  const runtime = await selectRuntime({ settings, stateDir, env, clock: realClock, log: recordingLogger(), uid: null })
  t.teardown(() => runtime.close())
  return runtime
}

/** Not a testdir: the path of a socket may have 107 bytes at most. */
async function socketFolder (t: Test): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-select-'))
  t.teardown(() => rm(folder, { recursive: true }))
  return folder
}

async function fake (t: Test, podman = false): Promise<FakeDocker> {
  const daemon = await FakeDocker.start()
  daemon.podman = podman
  t.teardown(() => daemon.close())
  return daemon
}

/** A socket that takes connections and says nothing, as a daemon that hangs. */
async function mute (t: Test): Promise<string> {
  const daemon = await fake(t)
  daemon.routes.set('GET /_ping', () => undefined)
  return daemon.host
}

t.test('DOCKER_HOST, whatever engine it is', async t => {
  for (const podman of [false, true]) {
    const { host } = await fake(t, podman)
    const { info, form } = await select(t, { driver: 'auto', env: { DOCKER_HOST: host } })
    const name = podman ? 'Podman' : 'Docker'
    t.same(info, {
      driver: podman ? 'podman' : 'docker', version: '99.0', endpoint: host, reason: `${name} 99.0 answers at ${host} (DOCKER_HOST)`
    })
    t.equal(form, 'container')
  }
})

t.test('a container engine is reached over TCP', async t => {
  const { host } = await fake(t)
  // the fake's socket behind a port
  const relay = createServer(client => {
    const daemon = connect(host.slice('unix://'.length))
    client.pipe(daemon).pipe(client)
    client.on('error', () => daemon.destroy())
    daemon.on('error', () => client.destroy())
  }).listen(0, '127.0.0.1')
  await once(relay, 'listening')
  t.teardown(() => relay.close())
  const { port } = relay.address() as { port: number }
  const runtime = await select(t, { driver: 'auto', env: { DOCKER_HOST: `tcp://127.0.0.1:${port}` } })
  t.equal(runtime.info.endpoint, `tcp://127.0.0.1:${port}`)
  t.same(await runtime.list({}), [])
})

t.test('what was passed over is in the reason', async t => {
  const daemon = await fake(t, true)
  const folder = await socketFolder(t)
  await mkdir(join(folder, 'podman'))
  await symlink(daemon.host.slice('unix://'.length), join(folder, 'podman/podman.sock'))
  const { info } = await select(t, {
    driver: 'podman', env: { DOCKER_HOST: `unix://${join(folder, 'gone.sock')}`, XDG_RUNTIME_DIR: folder }
  })
  t.match(info.reason, /^Podman 99\.0 answers at .*\(the rootless Podman socket\); passed over: DOCKER_HOST does not exist \(.*gone\.sock\)$/)
})

t.test('a driver that was asked for and does not answer is an error with the next step', async t => {
  const silent = await mute(t)
  const other = await fake(t, true)
  const file = join(await socketFolder(t), 'stale.sock')
  await writeFile(file, '')
  const cases: readonly (readonly [string, DriverSetting, RegExp])[] = [
    [silent, 'podman', /DOCKER_HOST did not answer within 0\.2 s/],
    [other.host, 'docker', /DOCKER_HOST is podman \(.*driver to auto/],
    [`unix://${file}`, 'podman', /DOCKER_HOST refuses connections/],
    ['unix:///nowhere/at/all.sock', 'podman', /DOCKER_HOST does not exist.*systemctl start podman\.socket/],
    ['tcp://127.0.0.1:1', 'podman', /DOCKER_HOST refuses connections/],
    ['tcp://127.0.0.1:2376', 'podman', /DOCKER_HOST cannot be reached \(.*ENOENT/],
    ['ssh://me@127.0.0.1:1', 'podman', /DOCKER_HOST refuses connections/],
    ['ftp://nonsense', 'podman', /DOCKER_HOST is not usable: ftp:\/\/nonsense has a scheme/]
  ]
  for (const [host, driver, message] of cases) {
    // a machine with an engine of its own would answer for itself after DOCKER_HOST
    const patience = host === silent ? { patienceS: 0.2 } : {}
    const outcome = await select(t, { driver, env: { DOCKER_HOST: host, DOCKER_CERT_PATH: '/nowhere' }, ...patience }).then(
      runtime => ({ code: 'runtime.unavailable', message: runtime.info.reason }), (error: unknown) => error)
    t.match(outcome, { code: 'runtime.unavailable', message }, host)
  }
})

t.test('of an engine that is there and does not say who it is, the limit that was over is told', async t => {
  const daemon = await fake(t)
  const asked = new Promise<void>(resolve => { daemon.routes.set('GET /info', () => resolve()) })
  const clock = new FakeClock()
  const settings = { driver: 'docker', connect_timeout_s: 5 } as const
  const env = { DOCKER_HOST: daemon.host }
  const selected = selectRuntime({ settings, stateDir: t.testdir(), env, clock, log: recordingLogger(), uid: null })
  const outcome = selected.then(async runtime => { await runtime.close(); return runtime.info.reason }, messageOf)
  await asked
  await clock.advance(30_000)
  t.match(await outcome, /DOCKER_HOST did not answer within 30 s/)
})

t.test('processes when asked for, without a look at any socket', async t => {
  const daemon = await fake(t)
  const { info, form } = await select(t, { driver: 'process', env: { DOCKER_HOST: daemon.host } })
  t.match(info, { driver: 'process', endpoint: null, reason: '[runtime] driver is process' })
  t.equal(form, 'process')
  t.same(daemon.requests, [])
})

t.test('engines run as processes if no container engine answers', async t => {
  const { info } = await select(t, { driver: 'auto', env: { DOCKER_HOST: 'unix:///nowhere/at/all.sock' } })
  t.match(info.reason, /DOCKER_HOST does not exist/)
  if (info.driver === 'process') t.match(info.reason, /^no container engine answers, so engines run as child processes: /)
})

t.test('dockerode is not loaded where there is no container engine', async t => {
  const fixture = join(import.meta.dirname, 'fixtures', 'process-only.js')
  const { stdout } = await promisify(execFile)(process.execPath, [fixture, t.testdir()])
  const { driver, loaded, ms } = JSON.parse(stdout) as { driver: string, loaded: boolean, ms: number }
  t.comment(`${driver} chosen in ${ms} ms`)
  t.equal(loaded, driver !== 'process')
})

t.test('an engine that breaks off, or answers nonsense, is passed over', async t => {
  const daemon = await fake(t)
  const answers: readonly FakeRoute[] = [
    (_request, response) => response.destroy(),
    (_request, response) => json(response, 500, { message: 'not today' }),
    (_request, response) => response.end('<html>hello</html>'),
    (_request, response) => {
      response.writeHead(200, { 'content-length': '100' }).write('{')
      setImmediate(() => response.destroy())
    }
  ]
  for (const answer of answers) {
    for (const path of ['_ping', 'info']) daemon.routes.set(`GET /${path}`, answer)
    await t.rejects(connectDocker({ kind: 'socket', url: daemon.host, path: daemon.host.slice(7) }, { clock: realClock, withinMs: 300 }))
  }
})

t.test('an engine behind a proxy that lets no ping through is used', async t => {
  const daemon = await fake(t)
  daemon.routes.set('GET /_ping', (_request, response) => json(response, 403, { message: 'not allowed' }))
  const engine = await connectDocker({ kind: 'socket', url: daemon.host, path: daemon.host.slice(7) }, { clock: realClock, withinMs: 60_000 })
  t.equal(engine.facts.version, '99.0')
  engine.close()
})

t.test('DOCKER_HOST of the process never leaks into a connection', async t => {
  const daemon = await fake(t)
  const before = process.env.DOCKER_HOST
  process.env.DOCKER_HOST = 'tcp://127.0.0.1:1'
  t.teardown(() => {
    if (before === undefined) delete process.env.DOCKER_HOST
    else process.env.DOCKER_HOST = before
  })
  const { info } = await select(t, { driver: 'auto', env: { DOCKER_HOST: daemon.host } })
  t.equal(info.endpoint, daemon.host)
})

t.test('the engine host of the last run is waited for while it is silent, and not replaced', async t => {
  const daemon = await fake(t)
  const stateDir = t.testdir()
  const log = recordingLogger()
  const instance = 'mine'
  const patient = { settings: { driver: 'auto' as const, connect_timeout_s: 60 }, stateDir, env: { DOCKER_HOST: daemon.host }, clock: realClock, log, uid: null }
  const options = { ...patient, settings: { ...patient.settings, connect_timeout_s: 0.2 } }
  const first = await selectRuntime(patient)
  await endFormerEngines({ ...patient, instance, withinMs: 60_000, hosts: [first.info], asked: new Set() })
  await first.close()

  let asked = 0
  daemon.routes.set('GET /_ping', () => {
    if (++asked === 2) daemon.routes.delete('GET /_ping')
  })
  const second = await selectRuntime(options)
  t.equal(second.info.driver, 'docker', 'it is silent, and answers a little later')
  await second.close()
  t.match(log.lines.join('\n'), /DOCKER_HOST ran the engines of this home but did not answer within 0\.2 s.*waiting for it, up to 60 s/)

  daemon.routes.set('GET /_ping', () => undefined)
  await t.rejects(selectRuntime({ ...options, waitMs: 100 }), {
    code: 'runtime.unavailable', message: /DOCKER_HOST ran the engines of this home but did not answer.*start it, or set \[runtime\] driver to process/
  }, 'it stays silent: its engines may run')
  const stop = new AbortController()
  const waiting = selectRuntime({ ...options, signal: stop.signal })
  stop.abort(new Error('stopped'))
  await t.rejects(waiting, { message: 'stopped' }, 'a gateway that is to stop does not wait')
  const other = await selectRuntime({ ...options, settings: { ...options.settings, driver: 'process' } })
  t.equal(other.info.driver, 'process', 'an operator may say so')
  await other.close()
  await daemon.close()
  const last = await selectRuntime({ ...patient, waitMs: 100 })
  t.not(last.info.endpoint, daemon.host, 'what is not there any more runs nothing')
  await last.close()
})

t.test('engines on a host that is not used any more are ended, also at a later start', async t => {
  const daemon = await fake(t)
  const stateDir = t.testdir()
  const log = recordingLogger()
  const instance = 'mine'
  const env = { DOCKER_HOST: daemon.host }
  const start = async (driver: DriverSetting): Promise<ContainerRuntime> => {
    const options = { settings: { driver, connect_timeout_s: 60 }, stateDir, env, clock: realClock, log, uid: null }
    const runtime = await selectRuntime(options)
    await endFormerEngines({ ...options, instance, withinMs: 60_000, hosts: [runtime.info], asked: new Set() })
    return runtime
  }
  const removed: string[] = []
  const here = daemon.add('a', { 'svc.instance': instance })
  for (const { id } of daemon.containers.values()) {
    daemon.routes.set(`DELETE /containers/${id}`, (_request, response) => {
      removed.push(id)
      daemon.containers.delete(id)
      response.writeHead(204).end()
    })
  }
  await (await start('docker')).close()
  t.strictSame(removed, [], 'the host in use is for the slots to look after')

  daemon.routes.set('GET /_ping', (_request, response) => response.destroy())
  const processes = await start('process')
  t.strictSame(removed, [], 'it gives no answer')
  const port = await freePort()
  const id = await processes.create(tinyProcess({ name: 'left', labels: { 'svc.instance': instance, 'svc.slot': 'a' }, port } as never), AbortSignal.timeout(120_000))
  await processes.start(id, AbortSignal.timeout(120_000))
  await processes.close()
  daemon.routes.delete('GET /_ping')
  const again = await start('process')
  t.strictSame(removed, [here.id], 'and is asked again at the next start')
  t.equal((await again.inspect(id))?.state, 'running', 'a child process of this driver stays')
  await again.close()

  await (await start('docker')).close()
  const after = await start('process')
  t.match(await after.list({}), [{ id, state: 'running' }], 'processes stand beside containers: they are for the slots to judge')
  await after.remove(id)
  await after.close()
})
