import t from 'tap'
import { createSystemClock } from '../../kernel/state/system-clock.js'
import { wireGateway } from './wire-gateway.js'

const slot = (more = ''): string => `provider = "fake"\ndevice = "cpu"\n${more}[model]\ndefault = "fake-model"\n`

t.test('while memory is short, idle slots make room and come back when they are asked for', async t => {
  const system = createSystemClock()
  let later = 0
  let availableMb = 50_000
  const gateway = await wireGateway(t, {
    clock: {
      now: () => system.now() + later,
      monotonic: () => system.monotonic() + later,
      setTimer: (ms, fn) => system.setTimer(ms, fn)
    },
    readMemory: () => Promise.resolve([{ kind: 'ram', gpu: '', totalMb: 64_000, availableMb }]),
    files: { 'etc/svc/slots/coder.toml': slot(), 'etc/svc/slots/writer.toml': slot('pinned = true\n'), 'etc/svc/slots/reader.toml': slot() }
  })
  const { slots } = gateway
  const { pressure } = gateway.gateway.inference()
  for (const name of ['agent', 'writer', 'coder', 'reader']) t.equal((await gateway.chat({ model: name })).status, 200)
  gateway.runtime.engine('reader').answer({ headAfterMs: Infinity })
  const leaves = new AbortController()
  const answer = gateway.chat({ model: 'reader' }, leaves.signal).catch(() => 'left')
  await gateway.runtime.engine('reader').request(1)
  later = 3_600_000
  await pressure.sweep()
  t.strictSame(slots.names().map(name => slots.status(name).state === 'offline' ? 0 : 1), [1, 1, 1, 1], 'there is enough')
  availableMb = 4_000
  await pressure.sweep()
  const states = (): string => ['agent', 'writer', 'coder', 'reader'].map(name => slots.status(name).state).join(' ')
  t.equal(states(), 'ready ready offline serving', 'not the anchor, not the pinned one, not the one that works')
  t.match(gateway.gateway.kernel().events.list({ type: 'slot.evicted' }).events, [{ data: { slot: 'coder', available_mb: 4_000, floor_mb: 8_192 } }])
  t.equal((await gateway.chat({ model: 'coder' })).status, 200)
  await gateway.gateway.kernel().config.patchSvc({ slots: { evict_pressure_mb: 0 } })
  later *= 2
  await pressure.sweep()
  t.notMatch(states(), 'offline', 'switched off, at once')
  t.match(await slots.unload('writer').catch((error: unknown) => error), { code: 'slot.pinned', status: 409 })
  await slots.unload('writer', { force: true })
  t.equal(slots.status('writer').state, 'offline')
  leaves.abort()
  t.equal(await answer, 'left')
})
