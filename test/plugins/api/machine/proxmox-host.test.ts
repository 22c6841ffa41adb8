import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import type { NewEvent } from '../../../../kernel/contract/index.js'
import { FakeClock } from '../../../../kernel/testing/index.js'
import { askHost } from '../../../../plugins/api/proxmox/host-client.js'
import { guestsSchema, hostStatus, nodeSchema, slimHost } from '../../../../plugins/api/proxmox/host-status.js'
import { HostTrouble, refusal, troubleText } from '../../../../plugins/api/proxmox/host-trouble.js'
import { HostWatch } from '../../../../plugins/api/proxmox/host-watch.js'
import { parsed } from '../../../../plugins/api/proxmox/settings-file.js'
import { FakeProxmox, TOKEN } from './fake-proxmox.js'
import { until } from '../support.js'

const MIB = 1024 * 1024

t.test('the answers of a node become its status, null where unknown', async t => {
  const of = (status: object, lxc: readonly object[] = [], qemu: readonly object[] = []) => hostStatus({
    node: 'pve', status: nodeSchema.parse(status), lxc: guestsSchema.parse(lxc), qemu: guestsSchema.parse(qemu)
  })
  const full = of({ memory: { total: 10 * MIB, used: 4 * MIB, free: 5 * MIB }, cpu: 0.5, cpuinfo: { cpus: 8 }, uptime: 7 })
  const texts = of({ memory: { total: String(10 * MIB), used: '1048576' }, uptime: '12.7' }, [
    { vmid: '7', maxmem: '2097152', status: 'running' }
  ])
  const cases: ReadonlyArray<readonly [string, ReturnType<typeof of>, object]> = [
    ['all of it', full, {
      host_mem_total_mb: 10, host_mem_used_mb: 4, host_mem_free_mb: 5, host_cpu_pct: 50,
      host_cpu_count: 8, host_uptime_s: 7, tenants: []
    }],
    ['memory alone', of({ memory: { total: 10 * MIB } }), {
      host_mem_total_mb: 10, host_mem_used_mb: null, host_mem_free_mb: null, host_cpu_pct: null,
      host_cpu_count: null, host_uptime_s: null
    }],
    ['no word of what is free', of({ memory: { total: 10 * MIB, used: 4 * MIB } }), { host_mem_free_mb: 6 }],
    ['numbers as text', texts, {
      host_mem_used_mb: 1, host_uptime_s: 12, tenants: [{ vmid: 7, name: '7', maxmem_mb: 2 }], tenants_allocated_mb: 2
    }],
    ['guests that say little', of({ memory: { total: 1 } }, [{ vmid: 3 }], [{ vmid: 2, template: 0 }]), {
      tenants_total: 2, tenants_running: 0, tenants_allocated_mb: 0, host_mem_total_mb: 0,
      tenants: [
        { type: 'qemu', vmid: 2, name: '2', status: 'unknown', maxmem_mb: null, mem_mb: null, maxcpu: null, cpu_pct: null, node: 'pve' }, { type: 'lxc', vmid: 3 }
      ]
    }],
    ['templates are none', of({ memory: { total: 1 } }, [{ vmid: 1, template: '1' }, { vmid: 2, template: '' }], [{ vmid: 3, template: 1 }]), { tenants_total: 1 }]
  ]
  for (const [name, status, wanted] of cases) t.match(status, wanted, name)
  t.same(slimHost(full), {
    configured: true, ok: true, node: 'pve', host_mem_total_mb: 10, host_mem_used_mb: 4, host_mem_free_mb: 5, host_cpu_pct: 50,
    tenants_running: 0, tenants_total: 0
  })
  t.same(slimHost({ configured: true, ok: false, error: 'x' }), { configured: true, ok: false, error: 'x' })
  for (const odd of [{}, { memory: {} }, { memory: { total: null } }, { memory: { total: 'much' } }, null, []]) t.notOk(nodeSchema.safeParse(odd).success)
})

t.test('why a host cannot be reached', async t => {
  const at = { host: 'pve', port: 8006 }
  const coded = (code: string): Error => Object.assign(new Error('sent by somebody'), { code })
  const cases: ReadonlyArray<readonly [unknown, RegExp]> = [
    [coded('ECONNREFUSED'), /^pve:8006: the connection was refused/], [coded('ENOTFOUND'), /no such host/],
    [coded('DEPTH_ZERO_SELF_SIGNED_CERT'), /not trusted here.*verify_ssl/], [coded('ERR_TLS_CERT_ALTNAME_INVALID'), /for another name/],
    [coded('CERT_HAS_EXPIRED'), /expired/], [coded('ERR_SSL_WRONG_VERSION_NUMBER'), /no TLS/], [coded('EWHATEVER'), /cannot be reached; check host and port$/],
    [new Error('sent by somebody'), /^pve:8006 cannot be reached/], [new HostTrouble('is odd'), /^pve:8006 is odd$/],
    [refusal(401, '/nodes'), /does not accept the token/], [refusal(403, '/nodes/x/status'), /PVEAuditor/], [refusal(595, '/nodes/x/lxc'), /its own node/],
    [refusal(500, '/nodes/x/lxc'), /answers \/nodes\/x\/lxc with 500/]
  ]
  for (const [error, text] of cases) {
    t.match(troubleText(error, at), text)
    t.notMatch(troubleText(error, at), /sent by somebody/)
  }
})

t.test('a settings file of the host is read in each state that it may have', async t => {
  const auth = TOKEN
  t.match(parsed(JSON.stringify({ proxmox: { host: 'pve' }, auth })), { kind: 'ok', settings: { host: 'pve', port: 8006, verify_ssl: false, ...TOKEN } })
  t.match(parsed(JSON.stringify({ proxmox: { host: 'pve', port: 443, verify_ssl: true, service: 'PVE' }, auth, more: 1 })), { kind: 'ok', settings: { port: 443, verify_ssl: true } })
  t.match(parsed('[]'), { kind: 'broken' })
})

interface Watched {
  readonly watch: HostWatch
  readonly clock: FakeClock
  readonly told: readonly NewEvent[]
}

function watched (t: Test): Watched {
  const clock = new FakeClock()
  const told: NewEvent[] = []
  const none = (): never => { throw new Error('not asked for') }
  const watch = new HostWatch({ clock, events: { epoch: '', emit: event => void told.push(event), list: none, subscribe: none } })
  t.teardown(() => watch.close())
  return { watch, clock, told }
}

t.test('an answer is good for 30 seconds, and one question runs at a time', async t => {
  const host = await FakeProxmox.start(t)
  const settings = { ...host.settings, verify_ssl: false }
  const { watch, clock, told } = watched(t)
  const [first, second] = await Promise.all([watch.current(settings), watch.current({ ...settings })])
  t.equal(first, second)
  t.match(first, { ok: true, node: 'pve' })
  t.equal(host.asked.length, 4, 'nodes, status and two lists, once')
  await clock.advance(29_999)
  t.equal(await watch.current(settings), first)
  t.equal(watch.latest(settings), first)
  t.equal(host.asked.length, 4)
  await clock.advance(1)
  host.mischief = 'cut'
  t.equal(watch.latest(settings), first, 'what is known is shown while it is asked anew')
  t.match(await watch.current(settings), { ok: false, error: /reset/ })
  t.equal(host.asked.length, 5)
  t.match(told.map(({ type, severity }) => `${type} ${severity}`), ['system.proxmox_unreachable warn'])
  await clock.advance(30_000)
  t.match(await watch.current(settings), { ok: false })
  t.equal(told.length, 1, 'once per change')
  host.mischief = null
  await clock.advance(30_000)
  t.match(await watch.current(settings), { ok: true })
  t.match(told.slice(1), [{ type: 'system.proxmox_recovered', data: { host: '127.0.0.1', port: host.port } }])
  t.equal(clock.pending, 0)
  await until(() => host.sockets.size === 0, 'no connection stays')
})

t.test('three seconds, whatever the host does', async t => {
  const host = await FakeProxmox.start(t)
  const settings = { ...host.settings, verify_ssl: false }
  for (const mischief of ['stall', 'stall-body'] as const) {
    const { watch, clock } = watched(t)
    host.mischief = mischief
    let isOver = false
    const answer = watch.current(settings).finally(() => { isOver = true })
    await until(() => host.pending === 1, mischief)
    await clock.advance(2_999)
    t.notOk(isOver)
    await clock.advance(1)
    t.match(await answer, { ok: false, error: /within 3 seconds/ }, mischief)
    t.equal(clock.pending, 0)
    await until(() => host.sockets.size === 0, 'the connection is gone')
  }

  const mute = createServer()
  mute.listen(0, '127.0.0.1')
  await once(mute, 'listening')
  t.teardown(() => mute.close())
  const { watch, clock } = watched(t)
  const answer = watch.current({ ...settings, port: (mute.address() as AddressInfo).port })
  const [socket] = await once(mute, 'connection') as [Socket]
  const gone = once(socket.resume(), 'close')
  socket.on('error', () => undefined)
  await clock.advance(3_000)
  t.match(await answer, { ok: false, error: /within 3 seconds/ }, 'no handshake')
  await gone
})

t.test('new settings end the question about the old ones', async t => {
  const [old, next] = [await FakeProxmox.start(t), await FakeProxmox.start(t)]
  const { watch, clock, told } = watched(t)
  old.mischief = 'stall'
  const given = watch.current({ ...old.settings, verify_ssl: false }).then(() => 'answered', () => 'ended')
  await until(() => old.pending === 1, 'the old one is asked')
  t.match(await watch.current({ ...next.settings, verify_ssl: false }), { ok: true })
  t.equal(await given, 'ended')
  await until(() => old.sockets.size === 0, 'nobody asks the old one any more')

  old.mischief = 'cut'
  await watch.forget()
  t.match(watch.latest({ ...next.settings, verify_ssl: false }), { ok: false, error: /first time/ }, 'all is forgotten')
  t.match(await watch.current({ ...old.settings, verify_ssl: false }), { ok: false })
  t.match(told.map(({ type }) => type), ['system.proxmox_unreachable'], 'an ended question is no news')

  old.mischief = 'stall'
  await clock.advance(30_000)
  const last = watch.current({ ...old.settings, verify_ssl: false }).then(() => 'answered', () => 'ended')
  await until(() => old.pending === 1, 'it is asked again')
  await watch.close()
  t.equal(await last, 'ended')
  t.equal(clock.pending, 0)
  await t.rejects(watch.current({ ...next.settings, verify_ssl: false }), 'who has stopped asks nobody')
  await t.rejects(askHost({ clock, settings: { ...next.settings, verify_ssl: false }, signal: AbortSignal.abort() }))
})
