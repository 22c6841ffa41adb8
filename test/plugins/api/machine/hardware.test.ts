import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { writeTree } from '../../../kernel/config/support.js'
import { cpuOnly } from '../../../kernel/hardware/machines/cpu-only.js'
import { nvidiaBesideRyzen } from '../../../kernel/hardware/machines/mixed.js'
import { strixHalo } from '../../../kernel/hardware/machines/strix-halo.js'
import { hardwareSchema } from '../../../../kernel/contract/index.js'
import { hardwareView } from '../../../../plugins/api/hardware/view.js'
import { apiOf } from '../support.js'

const api = apiOf('api-hardware', 'api-slots')

t.test('what the machine is, and a second look at it', async t => {
  const root = t.testdir()
  writeTree(root, cpuOnly.tree)
  const gateway = await api(t, { machine: { root } })
  const first = await gateway.call('GET', '/api/hardware')
  t.match(first, { status: 200, json: { hostname: 'rome', platform: 'bare-metal-cpu-only', gpus: { length: 0 }, gpu_vendor: null, memory_kind: 'system', npu_present: false } })
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
  t.equal(named(gpu('inside', { compute_capable: true, integrated: true, gtt_mb: 96_000 }), gpu('card', { compute_capable: true, vram_mb: 8192 })), 'card', 'memory of its own')
  t.equal(named(gpu('old card', { vulkan_capable: true, driver: 'nouveau', vram_mb: 8192 }), gpu('inside', { compute_capable: true, integrated: true })), 'inside', 'a driver that computes')
  t.equal(named(gpu('first', {}), gpu('second', {})), 'first')
})

t.test('a card wins over the graphics beside it, and each device counts its own GPUs', async t => {
  const root = t.testdir()
  writeTree(root, nvidiaBesideRyzen.tree)
  await mkdir(join(root, 'bin'))
  await writeFile(join(root, 'bin/nvidia-smi'), `#!/bin/sh\necho "${nvidiaBesideRyzen.nvidiaSmi!.trim()}"\n`)
  await chmod(join(root, 'bin/nvidia-smi'), 0o755)
  const slot = (device: string | null, gpuIndex: number | null): string => [
    'provider = "fake"', ...(device === null ? [] : [`device = "${device}"`]), ...(gpuIndex === null ? [] : [`gpu_index = ${gpuIndex}`]), '[model]', 'default = "fake-model"'
  ].join('\n') + '\n'
  const gateway = await api(t, {
    machine: { root, env: { PATH: join(root, 'bin') } },
    deviceNodes: ['/dev/nvidia0', '/dev/kfd', '/dev/dri/renderD128', '/dev/dri/renderD129'],
    files: {
      'etc/svc/slots/plain.toml': slot(null, null),
      'etc/svc/slots/cuda.toml': slot('gpu-cuda', 0),
      'etc/svc/slots/rocm.toml': slot('gpu-rocm', 0),
      'etc/svc/slots/every-amd.toml': slot('gpu-rocm', null),
      'etc/svc/slots/vulkan.toml': slot('gpu-vulkan', 1),
      'etc/svc/slots/all.toml': slot('gpu-vulkan', null),
      'etc/svc/slots/none.toml': slot('gpu-cuda', 1)
    }
  })
  t.match((await gateway.call('GET', '/api/hardware')).json, {
    gpu_name: 'NVIDIA GeForce RTX 4090', is_uma: false,
    gpus: [{ gpu_index: { 'gpu-cuda': 0, 'gpu-vulkan': 0 } }, { gpu_index: { 'gpu-rocm': 0, 'gpu-vulkan': 1 } }]
  })
  t.match((await gateway.call('GET', '/api/slots/plain')).json, { device: 'gpu-cuda' })
  const devicesOf = async (name: string): Promise<unknown> => {
    t.match(await gateway.call('POST', `/api/slots/${name}/load`), { status: 200 })
    const { form } = gateway.runtime.started.find(started => started.slot === name)!.spec
    return form.kind === 'container' ? { devices: form.devices, cdiDevices: form.cdiDevices } : form
  }
  t.same(await devicesOf('cuda'), { devices: [], cdiDevices: ['nvidia.com/gpu=0'] })
  t.same(await devicesOf('rocm'), { devices: ['/dev/kfd', '/dev/dri/renderD128'], cdiDevices: [] })
  t.same(await devicesOf('every-amd'), { devices: ['/dev/kfd', '/dev/dri/renderD128'], cdiDevices: [] }, 'no node of another maker')
  t.same(await devicesOf('vulkan'), { devices: ['/dev/dri/renderD128'], cdiDevices: [] })
  t.same(await devicesOf('all'), { devices: ['/dev/dri/renderD128', '/dev/dri/renderD129'], cdiDevices: ['nvidia.com/gpu=all'] })
  t.match((await gateway.call('POST', '/api/slots/none/load')).text, /GPU 1 \(for gpu-cuda this host has 0 NVIDIA GeForce RTX 4090\)/)
})
