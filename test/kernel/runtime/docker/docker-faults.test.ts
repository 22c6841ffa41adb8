import { createRequire } from 'node:module'
import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import type { Clock } from '../../../../kernel/contract/index.js'
import { LABEL_INSTANCE, type ContainerRuntime, type EngineExit, type PullProgress } from '../../../../kernel/contract/provider/engine-runtime.js'
import { connectDocker } from '../../../../kernel/runtime/docker/docker-connect.js'
import { parseDockerHost, type DockerEndpoint } from '../../../../kernel/runtime/docker/docker-endpoint.js'
import { createDockerRuntime } from '../../../../kernel/runtime/docker/docker-runtime.js'
import { FakeDocker, json, type FakeContainer } from './fake-docker.js'
import { collect, eventually, realClock, recordingLogger, within } from '../support.js'
import { tinyContainer } from '../../../../kernel/testing/tiny-engine.js'

const quiet = new AbortController().signal
const mine = { [LABEL_INSTANCE]: 'mine' }
const PIN = `sha256:${'1a'.repeat(32)}`

/** Real time at another speed: deadlines of half a minute pass in a moment. */
function fastClock (factor: number): Clock {
  return {
    now: () => Date.now() * factor,
    monotonic: () => performance.now() * factor,
    setTimer: (ms, fn) => realClock.setTimer(ms / factor, fn)
  }
}

interface Scene {
  readonly fake: FakeDocker
  readonly runtime: ContainerRuntime
  readonly exits: EngineExit[]
  readonly log: readonly string[]
}

async function open (t: Test, clock = realClock): Promise<Scene> {
  const fake = await FakeDocker.start()
  const engine = await connectDocker(parseDockerHost(fake.host, {}) as DockerEndpoint, { clock, withinMs: 300_000 })
  const log = recordingLogger()
  const runtime = createDockerRuntime({ engine, clock, log, reason: 'test' })
  t.teardown(async () => {
    await runtime.close()
    await eventually('no connection is left', () => fake.openConnections === 0)
    await fake.close()
  })
  return { fake, runtime, exits: [], log: log.lines }
}

function end (container: FakeContainer, exitCode: number): void {
  container.status = 'exited'
  container.exitCode = exitCode
}

async function watching (t: Test, clock?: Clock): Promise<Scene> {
  const scene = await open(t, clock)
  scene.runtime.onExit('mine', exit => { scene.exits.push(exit) })
  await eventually('it follows the events', () => scene.fake.followers === 1)
  return scene
}

t.test('exits: events, doubled events and events of both spellings', async t => {
  const { fake, exits } = await watching(t)
  const one = fake.add('1', mine)
  const two = fake.add('2', { ...mine, extra: 'label' })
  end(one, 3)
  fake.emitDie(one)
  fake.emitDie(one)
  end(two, 0)
  fake.emitDie(two, { exitCode: undefined, containerExitCode: '9' })
  await eventually('both are told', () => exits.length === 2)
  t.same(exits, [
    { id: one.id, labels: mine, exitCode: 3 }, { id: two.id, labels: { ...mine, extra: 'label' }, exitCode: 9 }
  ])
})

t.test('exits: what ended or went while the daemon was away is told once it is back', async t => {
  const { fake, runtime, exits, log } = await open(t)
  const [one, two, three] = [fake.add('1', mine), fake.add('2', mine), fake.add('3', mine, 'exited')]
  await runtime.list({ [LABEL_INSTANCE]: 'mine' })
  runtime.onExit('mine', exit => { exits.push(exit) })
  await eventually('it follows the events', () => fake.followers === 1)
  await fake.down()
  end(one, 137)
  fake.containers.delete(two.id)
  await fake.listen()
  await eventually('both are told', () => exits.length === 2)
  t.same(exits, [{ id: one.id, labels: mine, exitCode: 137 }, { id: two.id, labels: mine, exitCode: null }])
  t.notOk(exits.some(exit => exit.id === three.id), 'what had ended before is not')
  // a list may have told them before the events are followed again
  await eventually('it follows the events again', () => fake.followers === 1)
  fake.emitDie(one)
  const last = fake.add('4', mine)
  fake.emitDie(last)
  await eventually('the stream works again', () => exits.length === 3)
  t.equal(exits[2]?.id, last.id)
  t.match(log.join('\n'), /event stream of the container engine broke/)
})

t.test('exits: a daemon that stays away is asked again with growing patience', async t => {
  const { fake, log } = await watching(t, fastClock(50))
  await fake.down()
  await eventually('it gave up several times', () => log.filter(line => line.includes('event stream')).length >= 6)
  const before = log.length
  await fake.listen()
  await eventually('it is back', () => fake.followers === 1)
  t.ok(log.length - before < 20)
})

t.test('exits: an event that was lost is found by the regular list', async t => {
  const { fake, exits } = await watching(t, fastClock(100))
  const one = fake.add('1', mine)
  await eventually('it is listed', () => fake.requests.filter(request => request.startsWith(`GET /containers/${one.id}`)).length > 0)
  end(one, 5)
  await eventually('its end is told', () => exits.length === 1)
  t.same(exits, [{ id: one.id, labels: mine, exitCode: 5 }])
})

t.test('exits: garbage between events is passed over, and the last listener closes the stream', async t => {
  const { fake, runtime, exits } = await open(t)
  fake.routes.set('GET /events', (_request, response) => {
    response.write('not json\n{"Action":"die"}\n{"Action":"die","Actor":{"ID":5}}\n')
    response.write(`${JSON.stringify({ Action: 'die', Actor: { ID: 'f'.repeat(64), Attributes: { exitCode: 'x' } } })}\n`)
  })
  const stop = runtime.onExit('mine', exit => { exits.push(exit) })
  await eventually('one makes sense', () => exits.length === 1)
  t.same(exits, [{ id: 'f'.repeat(64), labels: {}, exitCode: null }])
  stop()
  await eventually('nothing is open', () => fake.openConnections === 0)
})

t.test('many calls at once are no leak', async t => {
  const { fake, runtime } = await open(t)
  const warnings: Error[] = []
  const note = (warning: Error): void => { warnings.push(warning) }
  process.on('warning', note)
  t.teardown(() => process.off('warning', note))
  for (const nibble of '0123456789abcdef') fake.add(nibble, mine)
  t.equal((await runtime.list(mine)).length, 16)
  await new Promise(resolve => setImmediate(resolve))
  t.same(warnings, [])
})

t.test('each call to a silent daemon fails after 30 s', async t => {
  const { fake, runtime } = await open(t, fastClock(100))
  const id = fake.add('1', mine).id
  for (const route of [`GET /containers/${id}/json`, `DELETE /containers/${id}`, `POST /containers/${id}/stop`, 'GET /containers/json']) {
    fake.routes.set(route, () => undefined)
  }
  const silent = { code: 'runtime.unavailable', message: /did not answer within 30 s while/ }
  await t.rejects(within(120_000, 'inspect', runtime.inspect(id)), silent)
  await t.rejects(within(120_000, 'remove', runtime.remove(id)), silent)
  await t.rejects(within(120_000, 'stop', runtime.stop(id, 1)), silent)
  await t.rejects(within(120_000, 'list', runtime.list(mine)), silent)
})

t.test('a daemon that breaks off in the middle of an answer', async t => {
  const { fake, runtime } = await open(t, fastClock(100))
  const { id } = fake.add('1', mine)
  fake.routes.set(`GET /containers/${id}/json`, (_request, response) => {
    response.writeHead(200, { 'content-length': '1000' }).write('{"Id":')
    setImmediate(() => response.destroy())
  })
  await t.rejects(within(120_000, 'inspect', runtime.inspect(id)), { code: 'runtime.unavailable' })
})

t.test('a daemon that is not there', async t => {
  const { fake, runtime } = await open(t)
  await fake.down()
  const id = '1'.repeat(64)
  const calls: readonly (() => Promise<unknown>)[] = [
    () => runtime.inspect(id), () => runtime.remove(id), () => runtime.list({}), () => runtime.imagePresent('a/b:1', null, quiet)
  ]
  for (const call of calls) {
    await t.rejects(call(), { code: 'runtime.unavailable', message: /cannot be reached \(ENOENT\)/ })
  }
})

t.test('remove: a removal by somebody else is waited for, one that fails is tried again', async t => {
  const { fake, runtime } = await open(t)
  const { id } = fake.add('1', mine)
  const answers = [409, 500, 409, 204]
  let asked = 0
  fake.routes.set(`DELETE /containers/${id}`, (_request, response) => {
    const status = answers[asked++] ?? 204
    if (status === 204) fake.containers.delete(id)
    json(response, status, { message: status === 409 ? `removal of container ${id} is already in progress` : 'device busy' })
  })
  await runtime.remove(id)
  t.equal(asked, 4)
})

t.test('remove: one that never works says why', async t => {
  const { fake, runtime } = await open(t, fastClock(10))
  const { id } = fake.add('1', mine)
  fake.routes.set(`DELETE /containers/${id}`, (_request, response) => json(response, 500, { message: 'driver failed to remove root filesystem' }))
  await t.rejects(runtime.remove(id), { code: 'runtime.failed', message: /driver failed to remove root filesystem/ })
})

t.test('stop: an answer that comes too early, or not at all, does not matter', async t => {
  const { fake, runtime } = await open(t)
  const one = fake.add('1', mine)
  fake.routes.set(`POST /containers/${one.id}/stop`, (_request, response) => {
    response.writeHead(204).end()
    setTimeout(() => end(one, 0), 150)
  })
  await runtime.stop(one.id, 5)
  t.equal(one.status, 'exited', 'resolves when it has really ended')
  const two = fake.add('2', mine)
  fake.routes.set(`POST /containers/${two.id}/stop`, () => setTimeout(() => fake.containers.delete(two.id), 100))
  await within(50_000, 'stop', runtime.stop(two.id, 60))
  const hurried = await open(t, fastClock(10))
  const stuck = hurried.fake.add('3', mine)
  hurried.fake.routes.set(`POST /containers/${stuck.id}/stop`, (_request, response) =>
    json(response, 500, { message: 'tried to kill container, but did not receive an exit event' }))
  // each look may take three seconds, on a busy machine too
  await t.rejects(hurried.runtime.stop(stuck.id, 5), { code: 'runtime.failed', message: /did not receive an exit event/ })
})

t.test('create: the specification stays out of the URL, an abort takes the container back', async t => {
  const { fake, runtime } = await open(t)
  let body = ''
  const id = 'c'.repeat(64)
  fake.routes.set('POST /containers/create', (request, response) => {
    request.on('data', (chunk: Buffer) => { body += chunk.toString() })
    request.on('end', () => {
      fake.add('c', mine, 'created')
      json(response, 201, { Id: id })
    })
  })
  fake.routes.set(`DELETE /containers/${id}`, (_request, response) => {
    fake.containers.delete(id)
    response.writeHead(204).end()
  })
  const spec = tinyContainer('a/b:1', { name: 'svc-a', port: 80, labels: mine, env: { TOKEN: 'secret' } })
  t.equal(await runtime.create(spec, quiet), id)
  t.match(JSON.parse(body), { Image: 'a/b:1' })
  t.match(body, /TOKEN=secret/)
  t.ok(fake.requests.includes('POST /containers/create?name=svc-a'), 'the name and nothing more')
  const leaving = new AbortController()
  const reason = new Error('gateway stops')
  const creating = runtime.create(spec, leaving.signal)
  leaving.abort(reason)
  await t.rejects(creating, reason)
  t.equal(fake.containers.size, 0)
  const process = { ...spec, form: { kind: 'process' } } as never
  await t.rejects(runtime.create(process, quiet), { code: 'runtime.failed', message: /\[runtime\] driver to process/ })
})

t.test('errors of the daemon come with what to do', async t => {
  const { fake, runtime } = await open(t)
  const spec = tinyContainer('a/b:1', { name: 'svc-a', port: 80, labels: mine, env: {} })
  for (const [status, message, code, expected] of [
    [404, 'No such image: a/b:1', 'runtime.image_missing', /image a\/b:1 is missing; pull it first/],
    [500, 'could not select device driver "cdi" with capabilities: []', 'runtime.failed', /28\.2 or newer/],
    [500, 'CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=0', 'runtime.failed', /nvidia-ctk cdi generate/],
    [500, 'container-init binary not found on the host', 'runtime.failed', /install catatonit/],
    [400, 'invalid mount config for type "bind": bind source path does not exist: /models', 'runtime.failed', /\/models; create the path/],
    [500, 'mkdir /x: no space left on device', 'runtime.failed', /free some space/],
    [409, 'Conflict. The container name "/svc-a" is already in use', 'runtime.failed', /creating svc-a failed: Conflict/]
  ] as const) {
    fake.routes.set('POST /containers/create', (_request, response) => json(response, status, { message }))
    await t.rejects(runtime.create(spec, quiet), { code, message: expected })
  }
})

t.test('pull: an image that is not the pinned one', async t => {
  const { fake, runtime } = await open(t)
  const ref = `a/b@${PIN}`
  fake.routes.set('POST /images/create', (_request, response) => response.end('{"status":"Digest: sha256:other"}\n'))
  for (const digests of [['a/b@sha256:other'], [], null]) {
    fake.routes.set(`GET /images/${ref}/json`, (_request, response) => json(response, 200, { RepoDigests: digests }))
    await t.rejects(runtime.pull('a/b:1', PIN, () => undefined, quiet), { code: 'runtime.digest_mismatch', details: { expected: PIN } })
    t.equal(await runtime.imagePresent('a/b:1', PIN, quiet), false)
  }
  t.ok(fake.requests.includes(`POST /images/create?fromImage=a%2Fb&tag=${encodeURIComponent(PIN)}`), 'by digest and without the tag')
})

t.test('pull: a tag that exists is never moved, one that does not is made', async t => {
  const { fake, runtime } = await open(t)
  fake.routes.set('POST /images/create', (_request, response) => response.end('{"status":"done"}\n'))
  fake.routes.set(`GET /images/a/b@${PIN}/json`, (_request, response) => json(response, 200, { RepoDigests: [`a/b@${PIN}`] }))
  fake.routes.set(`POST /images/a/b@${PIN}/tag`, (_request, response) => response.writeHead(201).end())
  const tagged = (): number => fake.requests.filter(request => request.includes('/tag?')).length
  fake.routes.set('GET /images/a/b:1/json', (_request, response) => json(response, 200, { RepoDigests: ['a/b@sha256:older'] }))
  await runtime.pull('a/b:1', PIN, () => undefined, quiet)
  t.equal(tagged(), 0)
  fake.routes.delete('GET /images/a/b:1/json')
  await runtime.pull('a/b:1', PIN, () => undefined, quiet)
  t.ok(fake.requests.includes(`POST /images/a/b@${PIN}/tag?repo=a%2Fb&tag=1`))
  await runtime.pull(`a/b@${PIN}`, null, () => undefined, quiet)
  t.equal(tagged(), 1, 'without a tag in the reference there is none to make')
})

t.test('pull: what goes wrong in the middle', async t => {
  const { fake, runtime } = await open(t)
  const pull = (onProgress: (progress: PullProgress) => void = () => undefined, signal = quiet): Promise<void> =>
    within(120_000, 'pull', runtime.pull('a/b:1', null, onProgress, signal))
  const layer = '{"status":"Downloading","progressDetail":{"current":1,"total":9},"id":"aaa"}\n'
  fake.routes.set('POST /images/create', (_request, response) =>
    response.end(`${layer}{"errorDetail":{"message":"unexpected EOF"},"error":"unexpected EOF"}\n`))
  await t.rejects(pull(), { code: 'runtime.image_missing', message: /a\/b:1 cannot be pulled: unexpected EOF/ }, 'told after status 200')
  fake.routes.set('POST /images/create', (_request, response) =>
    response.end('{"error":"write /var/lib/docker/tmp/x: no space left on device"}\n'))
  await t.rejects(pull(), { code: 'runtime.failed', message: /free some space/ })
  fake.routes.set('POST /images/create', (_request, response) => {
    response.write(layer)
    setImmediate(() => response.destroy())
  })
  await t.rejects(pull(), { code: 'runtime.unavailable' }, 'the daemon goes away')
  fake.routes.set('POST /images/create', (_request, response) => { response.write(layer) })
  for (const phase of ['before the answer', 'in the answer']) {
    const leaving = new AbortController()
    const reason = new Error('gateway stops')
    const silent = phase === 'before the answer'
    if (silent) fake.routes.set('POST /images/create', () => leaving.abort(reason))
    else fake.routes.set('POST /images/create', (_request, response) => { response.write(layer) })
    await t.rejects(pull(() => leaving.abort(reason), leaving.signal), reason, phase)
    await eventually('the connection is gone', () => fake.openConnections === 0)
  }
  await t.rejects(pull(() => undefined, AbortSignal.abort(new Error('too late'))), /too late/)
  fake.routes.set('POST /images/create', (_request, response) => response.end(layer))
  await t.rejects(pull(() => { throw new Error('a listener that fails') }), { message: /listener that fails/ })
})

t.test('logs: the stream breaks, the container is gone, nobody reads on', async t => {
  const { fake, runtime } = await open(t)
  const { id } = fake.add('1', mine)
  const path = `GET /containers/${id}/logs`
  await t.rejects(collect(runtime.logs(id, { tail: 5, follow: false, signal: quiet })), { code: 'runtime.not_found' })
  fake.routes.set(path, (_request, response) => {
    response.write(Buffer.from([1, 0, 0, 0, 0, 0, 0, 4, 111, 110, 101, 10]))
    setTimeout(() => response.destroy(), 50)
  })
  const seen: string[] = []
  await t.rejects((async () => {
    for await (const line of runtime.logs(id, { tail: 5, follow: true, signal: quiet })) seen.push(line)
  })(), { code: 'runtime.unavailable' })
  t.same(seen, ['one'])
  let written = 0
  let writer: ServerResponse | undefined
  fake.routes.set(path, (_request, response) => {
    const block = Buffer.concat([Buffer.from([1, 0, 0, 0, 0, 0, 4, 0]), Buffer.alloc(1023, 120), Buffer.from('\n')])
    writer = response
    const pour = (): void => {
      while (!response.destroyed && response.write(block)) written += block.length
      if (!response.destroyed) response.once('drain', pour)
    }
    pour()
  })
  const lines = runtime.logs(id, { tail: 5, follow: true, signal: quiet })[Symbol.asyncIterator]()
  await lines.next()
  const settled = await eventually('the writer is held up', async () => {
    const before = written
    // both ends are in this process: what can flow does so within a few turns of its loop
    for (let turns = 0; turns < 50; turns++) await new Promise(resolve => setImmediate(resolve))
    return written === before && writer?.writableNeedDrain === true ? written : null
  })
  t.ok(settled < 8 * 1024 * 1024, `after ${settled} bytes: a reader that does not read on stops the writer`)
  await lines.return?.()
  await eventually('the connection is gone', () => fake.openConnections === 0)
})

t.test('a call does not write out the streams that are open beside it', async t => {
  const { runtime } = await watching(t)
  // the library reaches it there
  const util = createRequire(import.meta.url)('node:util') as { inspect: (...args: unknown[]) => string }
  const { inspect } = util
  const sizes: number[] = []
  t.intercept(util, 'inspect', { value: (...args: unknown[]) => {
    const written = inspect(...args)
    sizes.push(written.length)
    return written
  } })
  await runtime.list(mine)
  t.ok(sizes.length > 0, 'the library writes out the options of a call')
  t.ok(Math.max(...sizes) < 2000, `${Math.max(...sizes)} characters at most`)
})
