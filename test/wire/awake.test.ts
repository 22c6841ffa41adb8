import t from 'tap'
import { createFakeProviderPlugin, createTestGateway, FakeClock, FakeEngineRuntime } from '../../kernel/testing/index.js'
import builtins from '../../plugins/index.js'
import { until } from './wire-gateway.js'

const MINUTE = 60_000

/** Routes that leave this machine, start programs of it, or are the engine's own. */
const elsewhere = /^(\/api\/(hf|logs)|\/upstream)\b/

t.test('looking at the gateway keeps no model awake, wakes none, and image mode ends all the same', async t => {
  const clock = new FakeClock()
  const runtime = new FakeEngineRuntime()
  const surfaces = { image: { path: '/v1/images/generations', streaming: false, body: 'json' as const } }
  const gateway = await createTestGateway({
    builtins,
    runtime,
    clock,
    plugins: [createFakeProviderPlugin(), createFakeProviderPlugin({ name: 'painter', slotTypes: ['image'], surfaces })],
    deviceNodes: ['/dev/dri/renderD128', '/dev/dri/card0'],
    files: {
      'etc/svc/svc.toml': '[slots]\nautostart = false\nidle_timeout_s = 300\n',
      'etc/svc/slots/coder.toml': 'provider = "fake"\ndevice = "cpu"\n',
      'etc/svc/slots/chat.toml': 'provider = "fake"\ndevice = "gpu-vulkan"\nidle_timeout_s = 0\n',
      'etc/svc/slots/img.toml': 'type = "image"\nprovider = "painter"\ndevice = "gpu-vulkan"\n[image]\nidle_restore_minutes = 5\n'
    }
  })
  const { gpu } = gateway.gateway.inference()
  t.teardown(async () => {
    await gateway.close()
    await runtime.destroy()
  })
  const post = (path: string, body: object): Promise<Response> => gateway.fetch(path, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body)
  })
  const { paths } = await (await gateway.fetch('/api/openapi.json')).json() as { paths: Record<string, object> }
  const looks = Object.entries(paths).filter(([path, methods]) => 'get' in methods && !elsewhere.test(path))
    .flatMap(([path]) => ['coder', 'img'].map(slot => path.replaceAll(/\{\w+\}/g, slot)))
  const unique = [...new Set(looks)]
  t.ok(unique.length > 60, `${unique.length} ways to look`)

  /** Everything that can be looked at, once, in a minute; streams are left as soon as they have begun. */
  const look = async (): Promise<number> => {
    const leave = new AbortController()
    let open = unique.length
    const answers = unique.map(path => gateway.fetch(path, { signal: leave.signal })
      .then(response => response.status, () => 0).finally(() => { open-- }))
    // some wait for a time limit
    for (let second = 0; second < 60; second++) {
      for (let turn = 0; open > 0 && turn < 10; turn++) await new Promise(resolve => { setTimeout(resolve, 5) })
      await clock.advance(1_000)
    }
    leave.abort()
    return (await Promise.all(answers)).filter(status => status === 200).length
  }

  t.equal((await post('/v1/chat/completions', { model: 'chat', messages: [] })).status, 200)
  const image = post('/v1/images/generations', { model: 'img', prompt: 'a tree' })
  for (let i = 0; gpu.status().mode !== 'img' || gateway.slots.status('img').state === 'offline'; i++) await clock.advance(100)
  await until(() => runtime.started.some(({ slot }) => slot === 'img'), 'the image engine runs')
  await image
  // last, because the clock goes on for as long as this machine takes to start the image engine
  t.equal((await post('/v1/chat/completions', { model: 'coder', messages: [] })).status, 200)
  t.match(gpu.status(), { mode: 'img', saved_llm_slots: ['chat'] })
  const started = runtime.started.length
  const used = ['coder', 'img'].map(name => gateway.slots.status(name).lastUsedAt)

  // in the first of four minutes, and in the last: a use in that one alone would keep them awake for longer than is waited
  for (const wait of [0, 2 * MINUTE]) {
    await clock.advance(wait)
    const seen = await look()
    t.ok(seen > 60, `${seen} of them show something`)
  }
  t.strictSame(['coder', 'img'].map(name => gateway.slots.status(name).lastUsedAt), used, 'nothing of that is a use')
  t.not(gateway.slots.status('coder').state, 'offline')
  await clock.advance(2 * MINUTE)
  t.equal(gateway.slots.status('coder').state, 'offline', 'five minutes after its last request')
  for (let i = 0; i < 600 && gpu.status().mode !== 'llm'; i++) await clock.advance(1_000)
  t.equal(gpu.status().mode, 'llm', 'and the GPU is given back')
  await until(() => runtime.started.length === started + 1, 'the one that made room is back')
  await look()
  t.strictSame(runtime.started.slice(started).map(({ slot }) => slot), ['chat'], 'and nothing else was woken')
  t.equal(gateway.slots.status('coder').state, 'offline')
})

t.test('a wall clock that is set back or ahead stops no pause and no idle time', async t => {
  const clock = new FakeClock()
  const day = 24 * 60 * MINUTE
  let broken = true
  const runtime = new FakeEngineRuntime({ onStart: () => { if (broken) throw new Error('no luck') } })
  const gateway = await createTestGateway({
    builtins,
    runtime,
    clock,
    plugins: [createFakeProviderPlugin()],
    files: {
      'etc/svc/svc.toml': '[slots]\nautostart = false\nidle_timeout_s = 300\n',
      'etc/svc/slots/coder.toml': 'provider = "fake"\ndevice = "cpu"\n'
    }
  })
  t.teardown(async () => {
    await gateway.close()
    await runtime.destroy()
  })
  const ask = async (): Promise<number> => (await gateway.fetch('/v1/chat/completions', {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"model":"coder","messages":[]}'
  })).status
  await ask()
  await ask()
  t.equal(await ask(), 503, 'it waits after two failures')
  clock.setWall(clock.now() - day)
  broken = false
  await clock.advance(6_000)
  t.equal(await ask(), 200, 'for as long as it said, whatever the wall clock says')
  t.ok(Math.abs(gateway.slots.status('coder').startedAt! - clock.now()) < MINUTE, 'times are shown as the clock has them now')
  clock.setWall(clock.now() + 2 * day)
  await clock.advance(MINUTE)
  t.equal(gateway.slots.status('coder').state, 'ready', 'a clock that is set ahead ends no idle time early')
  clock.setWall(clock.now() - 3 * day)
  await clock.advance(5 * MINUTE)
  for (let i = 0; gateway.slots.status('coder').state !== 'offline' && i < 100; i++) await clock.advance(100)
  t.equal(gateway.slots.status('coder').state, 'offline', 'and one that is set back leaves none open')
})
