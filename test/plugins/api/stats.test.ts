import t from 'tap'
import { chatStream, createFakeProviderPlugin } from '../../../kernel/testing/index.js'
import { hardwareSchema } from '../../../kernel/contract/index.js'
import { mainReading } from '../../../plugins/api/stats/hardware-stats.js'
import { metricsText } from '../../../plugins/api/stats/prometheus.js'
import { virtualizationHost } from '../../../plugins/api/stats/virtualization-host.js'
import text from '../../../plugins/v1/text/index.js'
import { writeTree } from '../../kernel/config/support.js'
import { intelIgpu } from '../../kernel/hardware/machines/intel-igpu.js'
import { kvm } from '../../kernel/hardware/machines/virtual.js'
import { strixHalo } from '../../kernel/hardware/machines/strix-halo.js'
import { fakeUpstream, upstreamTable } from '../../wire/fake-upstream.js'
import { apiOf, groupOf } from './support.js'

const names = ['api-stats', 'api-hardware', 'api-slots']
const api = apiOf(...names)

const JSON_TYPE = { 'content-type': 'application/json' }
const SSE = { 'content-type': 'text/event-stream' }

t.test('a reading of the machine is good for a while', async t => {
  const root = t.testdir()
  writeTree(root, strixHalo.tree)
  const gateway = await api(t, { machine: { root } })
  const { status, json } = await gateway.call('GET', '/api/stats/hardware')
  t.equal(status, 200)
  t.match(json, {
    ram_used_mb: 32_396, ram_used_gb: 31.64, ram_available_gb: 93.75, gtt_used_mb: 30_720, vram_used_mb: 384, gpu_util: 0.87,
    util_is_forced_high: false, gpu_vram_used_mb: 384, gpu_vram_total_mb: 512, gpu_clock_mhz: 2643, gpu_temp_c: 61,
    npu_util: null, npu_status: { ok: true, model_mb: 0 },
    host: { configured: false, detected: false }, per_upstream: {}, upstream_names: { length: 0 },
    per_slot: { agent: { state: 'offline', vram_mb: 0, ram_mb: 0, mem_mb: 0 } }, gpus: [{ power_w: 94.031, gtt_total_mb: 112_640 }]
  })
  t.match((await gateway.call('GET', '/api/stats/power')).json, { gpu_power_w: 94.031, gpu_temp_c: 61, gpu_sclk_mhz: 2643, cpu_temp_c: 66.125 })
  t.equal((await gateway.call('GET', '/api/stats/hardware')).json.sampled_at, json.sampled_at, 'a reading is good for a while')
})

t.test('gauges that a machine does not have are null', async t => {
  for (const [{ tree }, wanted] of [
    [intelIgpu, { gpu_power_w: null, gpu_temp_c: null, gpu_sclk_mhz: 0, cpu_temp_c: 43 }],
    [kvm, { gpu_power_w: null, gpu_temp_c: null, gpu_sclk_mhz: null, cpu_temp_c: null }]
  ] as const) {
    const root = t.testdir()
    writeTree(root, tree)
    const gateway = await api(t, { machine: { root } })
    t.same((await gateway.call('GET', '/api/stats/power')).json, wanted)
    const { json } = await gateway.call('GET', '/api/stats/hardware')
    t.match(json, { gpu_util: null, gtt_used_mb: null, gpu_vram_total_mb: null })
    t.notOk('npu_status' in json, 'no NPU, no word of it')
  }
})

t.test('a machine that tells nothing', async t => {
  const gateway = await api(t, { machine: { root: t.testdir() } })
  t.match((await gateway.call('GET', '/api/stats/hardware')).json, { ram_used_mb: null, ram_used_gb: null, cpu_util: null, gpus: { length: 0 } })
  t.equal((await gateway.call('GET', '/api/hardware')).status, 200)
})

t.test('requests are counted by slot, upstream and client', async t => {
  const remote = await fakeUpstream(t, ['gpt-9'])
  const gateway = await api(t, {
    group: [...groupOf(...names), text],
    providers: [createFakeProviderPlugin()],
    files: { 'etc/svc/upstreams.toml': upstreamTable('cloud', remote.url) },
    onStart: ({ engine }) => engine.answer({ headers: SSE, chunks: chatStream(['a', 'b', 'c']) })
  })
  const empty = (await gateway.call('GET', '/api/stats/requests')).json
  t.same(empty, { window_s: 60, requests: 0, req_per_min: 0, p50_ms: null, p95_ms: null, endpoints: [], errors: 0 })
  const ask = async (path: string, body: object) => (await gateway.call('POST', path, body)).status
  t.equal(await ask('/v1/chat/completions', { model: 'agent', messages: [], stream: true }), 200)
  t.equal(await ask('/v1/chat/completions', { model: 'gpt-9', messages: [] }), 200)
  t.equal(await ask('/v1/chat/completions', { model: 'nobody', messages: [] }), 404)
  remote.play({ status: 429, headers: JSON_TYPE, chunks: ['{"error":{"message":"slow down"}}'] })
  t.ok(await ask('/v1/completions', { model: 'gpt-9', prompt: 'x' }) >= 400)

  const requests = (await gateway.call('GET', '/api/stats/requests?window_s=600')).json
  t.match(requests, {
    window_s: 600, requests: 4, req_per_min: 0.4, p50_ms: Number, p95_ms: Number, errors: 2,
    endpoints: [{ path: '/v1/chat/completions', count: 3 }, { path: '/v1/completions', count: 1 }]
  })

  for (const path of ['/api/stats/throughput', '/api/stats/throughput/history']) {
    const { json } = await gateway.call('GET', `${path}?window_s=60&buckets=1`)
    t.match(json, {
      window_s: 60, bucket_s: 60, samples: [{ serving_slots: 1, total_tps: 0.083 }], per_slot: { agent: [0.05] },
      per_upstream: { cloud: [0.033] }
    }, path)
    t.ok(Math.abs(json.samples[0].ts - Date.now() / 1000) < 60)
  }
  t.match((await gateway.call('GET', '/api/stats/throughput')).json, { window_s: 100, bucket_s: 5 })
  t.match((await gateway.call('GET', '/api/stats/slots')).json, { agent: { token_count: 3, request_count: 1, state: /ready|idle/, model_id: 'fake-model', ram_mb: null } })
  t.match((await gateway.call('GET', '/api/stats/hardware')).json, {
    upstream_names: ['cloud'], per_upstream: { cloud: { token_count: 2, ttft_ms: null } }, per_slot: { agent: { model_id: 'fake-model' } }
  })
  for (const path of ['throughput?buckets=0', 'throughput?buckets=121', 'throughput/history?window_s=4', 'throughput?window_s=3601', 'throughput?x=1', 'requests?window_s=0', 'requests?window_s=x']) {
    t.match(await gateway.call('GET', `/api/stats/${path}`), { status: 400, json: { error: { code: /^validation\./ } } }, path)
  }
})

t.test('a guest of Proxmox is recognised by platform and kernel', async t => {
  const host = (more: object) => virtualizationHost(hardwareSchema.parse(more))
  t.match(host({ platform: 'proxmox-kvm' }), { detected: true, detection: 'detected' })
  t.match(host({ kernel: '6.14.11-4-pve', platform: 'lxc' }), { detected: true, detection: 'detected' })
  t.match(host({ kernel: '6.14.11-4-pve', platform: 'strix-halo', extra: { container: 'lxc' } }), { detected: true })
  t.match(host({ kernel: '6.14.11-4-pve' }), { detected: false, detection: 'uncertain', hint: /not one of its containers/ })
  t.match(host({ platform: 'lxc' }), { detected: false, detection: 'uncertain' })
  t.same(host({ platform: 'kvm' }), { configured: false, detected: false })
})

/** An empty line, a comment, or a sample with labels whose values are escaped. */
const promLine = /^(|# (HELP|TYPE) svc_[a-z_]+ .+|svc_[a-z_]+(\{([a-z]+="([^"\\\n]|\\["\\n])*",?)+\})? -?\d+(\.\d+)?)$/

t.test('everything at once, and for Prometheus', async t => {
  const root = t.testdir()
  writeTree(root, strixHalo.tree)
  const remote = await fakeUpstream(t, ['gpt-9'])
  const gateway = await api(t, {
    machine: { root },
    group: [...groupOf(...names), text],
    files: { 'etc/svc/upstreams.toml': upstreamTable('cloud', remote.url) },
    onStart: ({ engine }) => engine.answer({ headers: SSE, chunks: chatStream(['a', 'b']) })
  })
  await gateway.call('POST', '/v1/chat/completions', { model: 'agent', messages: [], stream: true })
  t.match((await gateway.call('GET', '/api/metrics')).json, {
    slots: { agent: { token_count: 2 } }, hardware: { gpu_util: 0.87 },
    dispatcher: { in_flight: 0, requests: 1, errors: 0, window_s: 60 }
  })
  const { status, headers, text: body } = await gateway.call('GET', '/api/metrics/prometheus')
  t.equal(status, 200)
  t.equal(headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8')
  const lines = body.split('\n')
  for (const line of [
    'svc_slot_up{slot="agent"} 1', 'svc_slot_state{slot="agent",state="offline"} 0', 'svc_slots_ready_total 1', 'svc_slot_tokens_total{slot="agent"} 2',
    'svc_upstream_up{upstream="cloud"} 1', 'svc_upstream_requests_total{upstream="cloud"} 0', 'svc_requests_in_flight 0', 'svc_gpu_power_watts{gpu="0000:c1:00.0",name="Strix Halo [Radeon Graphics / Radeon 8050S Graphics / Radeon 8060S Graphics]"} 94.031'
  ]) t.ok(lines.includes(line), line)
  for (const line of lines) t.match(line, promLine)
  const typed = lines.filter(line => line.startsWith('# TYPE')).map(line => line.split(' ')[2])
  t.equal(new Set(typed).size, typed.length, 'every family once')
})

t.test('labels of Prometheus are escaped, and what is unknown is left out', async t => {
  const text = metricsText({
    version: '1', slots: [], requestsInFlight: 0, upstreams: [{ name: 'a"b\\c\nd', circuit: { state: 'open', failures: 3, retry_in_ms: 1 }, counters: null }],
    reading: { at: 0, cpu_util: null, cpu_temp_c: null, ram_total_mb: 1, ram_available_mb: null, gpus: [] }
  })
  t.match(text, 'svc_upstream_up{upstream="a\\"b\\\\c\\nd"} 0\n')
  t.match(text, 'svc_host_memory_total_bytes 1048576\n')
  t.notMatch(text, /cpu_utilization|available_bytes|svc_slot_up|gpu/)
})

t.test('headline figures are those of the busiest card, not of the first or of the graphics beside it', async t => {
  const gpus = [['a', false], ['b', false], ['c', true]].map(([id, integrated]) => ({ pci_id: id, vendor: 'amd', compute_capable: true, vram_mb: 8_192, integrated }))
  const reading = (id: string, util: number) => ({ pci_id: id, util }) as never
  const info = hardwareSchema.parse({ gpus })
  t.match(mainReading(info, { gpus: [reading('a', 0.05), reading('b', 0.9), reading('c', 1)] } as never), { pci_id: 'b' })
  t.equal(mainReading(hardwareSchema.parse({}), { gpus: [] } as never), undefined)
})
