import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { writeTree } from '../../kernel/config/support.js'
import { cpuOnly } from '../../kernel/hardware/machines/cpu-only.js'
import { strixHalo } from '../../kernel/hardware/machines/strix-halo.js'
import { hardwareSchema } from '../../../kernel/contract/index.js'
import { hardwareView } from '../../../plugins/api/hardware/view.js'
import { api } from './support.js'

t.test('what the machine is, and a second look at it', async t => {
  const root = t.testdir()
  writeTree(root, cpuOnly.tree)
  const gateway = await api(t, { machine: { root } })
  const first = await gateway.call('GET', '/api/hardware')
  t.match(first, { status: 200, json: { hostname: 'rome', platform: 'bare-metal-cpu-only', gpus: [], gpu_vendor: null, memory_kind: 'system', npu_present: false } })
  t.not(first.json.uptime_s, 351_735.47, 'the uptime is not that of the probe')

  writeTree(root, strixHalo.tree)
  t.equal((await gateway.call('GET', '/api/hardware')).json.platform, 'bare-metal-cpu-only', 'the probe is cached')
  const probed = await gateway.call('POST', '/api/hardware/probe')
  t.match(probed, { status: 200, json: { platform: 'strix-halo', is_uma: true, npu_name: 'RyzenAI-npu5' } })
  const { json } = await gateway.call('GET', '/api/hardware')
  t.same({ ...json, uptime_s: 0 }, { ...probed.json, uptime_s: 0 })
  const kept = JSON.parse(await gateway.file('etc/svc/hardware.json'))
  t.match(kept, { platform: 'strix-halo', uptime_s: 351_735.47 })
  t.notOk('gpu_name' in kept, 'what is only for the answer is not kept')
  t.match(gateway.audit()[0], { action: 'system.hardware_probe', outcome: 'ok', before: { platform: 'bare-metal-cpu-only' }, after: { platform: 'strix-halo' } })
})

t.test('a kept probe is used at the next start; keys of operators come along; a broken file is probed anew', async t => {
  const root = t.testdir()
  writeTree(root, cpuOnly.tree)
  const kept = { ...hardwareSchema.parse({}), hostname: 'kept', probed_at: '2026-01-01T00:00:00.000Z', slots: { agent: { warmup_grace_s: 5 } }, extra: { gtt_total_mb: 'lots' } }
  const gateway = await api(t, { machine: { root }, files: { 'etc/svc/hardware.json': JSON.stringify(kept) } })
  t.match((await gateway.call('GET', '/api/hardware')).json, { hostname: 'kept', gtt_total_mb: 0, slots: { agent: {} } })
  t.match((await gateway.call('POST', '/api/hardware/probe')).json, { hostname: 'rome', slots: { agent: { warmup_grace_s: 5 } } })
  await writeFile(join(gateway.home, 'etc/svc/hardware.json'), '{ broken')
  t.match((await gateway.call('POST', '/api/hardware/probe')).status, 200)
  t.match(JSON.parse(await readFile(join(gateway.home, 'etc/svc/hardware.json'), 'utf8')), { hostname: 'rome' })
  const broken = await api(t, { machine: { root }, files: { 'etc/svc/hardware.json': '{"hostname": 7}' } })
  t.match(await broken.call('GET', '/api/hardware'), { status: 200, json: { hostname: 'rome' } })
})

t.test('the GPU that is named is the one that engines would take', async t => {
  const gpu = (name: string, more: object) => ({ name, ...more })
  const named = (...gpus: object[]): string => hardwareView(hardwareSchema.parse({ gpus }), 0).gpu_name
  t.equal(named(gpu('display', { vulkan_capable: true }), gpu('card', { vulkan_capable: true, vram_mb: 8192 })), 'card')
  t.equal(named(gpu('big', { vulkan_capable: true, vram_mb: 8192 }), gpu('computes', { compute_capable: true })), 'computes')
  t.equal(named(gpu('first', {}), gpu('second', {})), 'first')
})
