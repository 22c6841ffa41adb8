import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { chatAnswer, createTestGateway } from '../../../../kernel/testing/index.js'
import type { EngineScript, SeenRequest } from '../../../../kernel/testing/fake-engine.js'
import llmServer from '../../../../plugins/providers/llm-server/index.js'
import slotRoutes from '../../../../plugins/api/slots/index.js'
import { ggufFile } from '../../../kernel/models/gguf-file.js'
import { haloWithCard, haloWithRadeon, nvidiaBesideRyzen, twoMakers } from '../../../kernel/hardware/machines/mixed.js'
import { deviceNodesOf } from '../../../kernel/hardware/machines/recording.js'
import { strixHalo } from '../../../kernel/hardware/machines/strix-halo.js'
import { writeTree } from '../../../kernel/config/support.js'
import { reservePorts } from '../../../ports.js'
import { apiOn } from './machine.js'
import type { Api } from '../support.js'

/** What FastFlowLM and ComfyUI answer when they are asked how they are, and to a chat. */
function wellAnswer ({ url }: SeenRequest): EngineScript {
  const body = url === '/v1/models'
    ? '{"data":[{"id":"llama3.2:1b"}]}'
    : url === '/system_stats' ? '{"system":{"python_version":"3.13"}}' : chatAnswer('hi')
  return { headers: { 'content-type': 'application/json' }, chunks: [body] }
}

interface Launched {
  readonly port: number | null
  readonly devices: readonly string[]
  readonly cdiDevices: readonly string[]
}

async function launched (gateway: Api, slot: string): Promise<Launched> {
  const { status, text } = await gateway.call('POST', `/api/slots/${slot}/load`)
  if (status !== 200) throw new Error(text)
  const { form, port } = gateway.runtime.started.findLast(started => started.slot === slot)!.spec
  if (form.kind !== 'container') throw new Error('no container')
  return { port, devices: form.devices, cdiDevices: form.cdiDevices }
}

/** Each slot that setup writes, with its device. */
async function setUp (gateway: Api, tier: string): Promise<Readonly<Record<string, string>>> {
  const { json } = await gateway.call('POST', '/api/install/apply', { tier, pull: false })
  return Object.fromEntries((json.slots as Array<{ slot: string, device: string }>).map(({ slot, device }) => [slot, device]))
}

for (const [name, machine, device, card] of [
  ['GeForce', haloWithCard, 'gpu-cuda', { devices: [], cdiDevices: ['nvidia.com/gpu=0'] }],
  ['Radeon', haloWithRadeon, 'gpu-rocm', { devices: ['/dev/kfd', '/dev/dri/renderD129'], cdiDevices: [] }]
] as const) {
  t.test(`Strix Halo with a ${name} outside: language models take the card, and the NPU keeps its own render node`, async t => {
    const gateway = await apiOn(t, machine, { onStart: ({ engine }) => engine.answer(wellAnswer) })
    t.match((await gateway.call('GET', '/api/hardware')).json, {
      platform: 'strix-halo', unified_memory_mb: 112_640, is_uma: false, npu: { render_path: '/dev/dri/renderD128' },
      gpus: [{ drm_path: '/dev/dri/renderD129', integrated: false }, { drm_path: '/dev/dri/renderD128', integrated: true, gtt_mb: 112_640 }]
    })
    t.match(await setUp(gateway, 'auto'), { coder: device })
    const create = (slot: object): ReturnType<Api['call']> => gateway.call('POST', '/api/slots', slot)
    await create({ name: 'npu', type: 'llm', device: 'npu', model: { default: 'llama3.2:1b' } })
    t.match(await launched(gateway, 'npu'), { devices: ['/dev/accel/accel0', '/dev/dri/renderD128'], cdiDevices: { length: 0 } })
    await create({ name: 'card', type: 'llm', device, gpu_index: 0, model: { default: 'fake-model' } })
    t.match(await launched(gateway, 'card'), card)
  })
}

t.test('a GeForce beside the graphics of a Ryzen: setup takes the card, and no device has the memory of another', async t => {
  const gateway = await apiOn(t, nvidiaBesideRyzen)
  const backends = (await gateway.call('GET', '/api/backends')).json as Array<{ id: string }>
  t.match(backends.find(({ id }) => id === 'gpu-cuda'), { hardware: 'NVIDIA GeForce RTX 4090', memTotalMb: 24_564 })
  t.match(backends.find(({ id }) => id === 'gpu-rocm'), { hardware: /^Granite Ridge/, memTotalMb: 32_039 })
  t.match(await setUp(gateway, 'auto'), { coder: 'gpu-cuda' })
  t.match(await setUp(gateway, 'Max'), { embed: 'gpu-cuda', rerank: 'gpu-cuda', stt: 'gpu-cuda', tts: 'gpu-cuda', vision: 'gpu-cuda' })
})

t.test('headline figures are those of the busiest card, not of the first on the bus', async t => {
  const gateway = await apiOn(t, twoMakers)
  const { json } = await gateway.call('GET', '/api/stats/hardware')
  t.match(json.gpus, [{ vendor: 'nvidia', util: 0.04 }, { vendor: 'amd', util: 1 }])
  const radeon = { gpu_util: 1, gpu_vram_used_mb: 20_480, gpu_vram_total_mb: 24_560, gpu_clock_mhz: 2304, gpu_temp_c: 58 }
  t.match(json, { ...radeon, vram_used_mb: 21_684 }, 'memory is that of both')
  t.match((await gateway.call('GET', '/api/stats/power')).json, { gpu_power_w: 303, gpu_temp_c: 58, gpu_sclk_mhz: 2304 })
})

t.test('the image engine is started on the port that the addresses name', async t => {
  const gateway = await apiOn(t, strixHalo, { onStart: ({ engine }) => engine.answer(wellAnswer) })
  await gateway.call('POST', '/api/slots', { name: 'img', type: 'image', device: 'gpu-rocm' })
  const { port, devices } = await launched(gateway, 'img')
  t.strictSame(devices, ['/dev/kfd', '/dev/dri/renderD128'])
  // it is 8188 unless another program of this machine has that
  t.equal(new URL((await gateway.call('GET', '/api/config/urls')).json.comfyui).port, String(port))
})

/** Writes down how it was called, and is healthy. */
const LLAMA_SERVER = `
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
const argv = process.argv.slice(2)
writeFileSync(new URL('argv', import.meta.url), argv.join(' '))
createServer((_request, response) => response.end('{"status":"ok"}')).listen(Number(argv[argv.indexOf('--port') + 1]), '127.0.0.1')
`

t.test('the profile of a device reads weights into memory: llama-server is called with what took the place of --no-mmap', async t => {
  const folder = t.testdir({ 'model.gguf': ggufFile(), 'bin': { 'engine.mjs': LLAMA_SERVER } })
  writeTree(join(folder, 'machine'), strixHalo.tree)
  const bin = join(folder, 'bin')
  writeFileSync(join(bin, 'llama-server'), `#!/bin/sh\nexec '${process.execPath}' '${join(bin, 'engine.mjs')}' "$@"\n`)
  chmodSync(join(bin, 'llama-server'), 0o755)
  const gateway = await createTestGateway({
    plugins: [llmServer, slotRoutes],
    stopEngines: true,
    hardwareRoot: join(folder, 'machine'),
    deviceNodes: deviceNodesOf(strixHalo),
    env: { PATH: bin },
    files: {
      'etc/svc/svc.toml': `[runtime]\ndriver = "process"\n[slots]\nautostart = false\n${(await reservePorts(t)).toml}`,
      'var/lib/svc/registry/registry.toml': `[models.tiny]\npath = "${join(folder, 'model.gguf')}"\n`
    }
  })
  t.teardown(() => gateway.close())
  const post = async (path: string, body: object): Promise<unknown> => {
    const response = await gateway.fetch(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
    return { status: response.status, json: await response.json() }
  }
  for (const device of ['gpu-rocm', 'gpu-vulkan', 'cpu']) {
    t.match(await post('/api/slots', { name: device, type: 'llm', device, model: { default: 'tiny' } }), { status: 201 })
    t.match(await post(`/api/slots/${device}/load`, {}), { status: 200, json: { state: 'ready' } })
    const argv = readFileSync(join(bin, 'argv'), 'utf8')
    t.match(argv, / --load-mode none( |$)/, `${device}: ${argv}`)
    t.notMatch(argv, / --(no-)?(mmap|mlock)/, 'flags that keep a llama-server of today from starting')
  }
})
