import t from 'tap'
import { createFakeProviderPlugin } from '../../../../kernel/testing/index.js'
import llmServer from '../../../../plugins/providers/llm-server/index.js'
import { apiOf, groupOf } from '../support.js'

const api = apiOf('api-slots')

t.test('a chat template or a provider that nothing knows is told by the answer to the write', async t => {
  const gateway = await api(t, { providers: [createFakeProviderPlugin(), llmServer] })
  const named = (await gateway.call('POST', '/api/slots', {
    name: 'chat', provider: 'llm-server', device: 'cpu', model: 'fake-model', chat_template: 'nix'
  }))
  t.match(named, { status: 201, json: { findings: [{ path: 'chat_template', code: 'slot.load_failed', message: /nix\.jinja/ }] } })
  const put = (patch: object): ReturnType<typeof gateway.call> => gateway.call('PUT', '/api/slots/chat/config', patch)
  const mended = await put({ chat_template: null })
  t.equal(mended.status, 200)
  t.notOk((mended.json.findings ?? []).some(({ path }: { path: string }) => path === 'chat_template'))
  t.match((await put({ chat_template: 'other' })).json.findings, [{ path: 'chat_template', message: /other\.jinja/ }])
  t.match(await put({ chat_template: 'auto', provider: 'nobody' }), {
    status: 200, json: { findings: [{ path: 'provider', code: 'slot.provider_gone', message: /no such provider: 'nobody'; there are: .*llm-server/ }] }
  }, 'its plugin may come later')
})

t.test('forced multi-token prediction is refused where nothing can draft', async t => {
  const gateway = await api(t, { providers: [createFakeProviderPlugin(), llmServer] })
  const slot = { provider: 'llm-server', model: 'fake-model', mtp: true }
  t.match(await gateway.call('POST', '/api/slots', { name: 'chat', device: 'cpu', ...slot }), {
    status: 400, json: { error: { code: 'slot.config_error', param: 'mtp', message: /needs a GPU.*set mtp to false or null/ } }
  })
  t.equal((await gateway.call('POST', '/api/slots', { name: 'chat', device: 'gpu-rocm', ...slot })).status, 201)
  t.match(await gateway.call('PUT', '/api/slots/chat/config', { device: 'cpu' }), { status: 400, json: { error: { param: 'mtp' } } }, 'nor by moving it')
})

t.test('every bounded setting keeps its bounds, and a refusal names them', async t => {
  const gateway = await api(t, { group: groupOf('api-settings', 'memory', 'memory-engine', 'updates') })
  const beyond: ReadonlyArray<readonly [table: string, key: string, refused: readonly unknown[], taken: readonly unknown[]]> = [
    ['slots', 'max_slots', [-1, 1.5], [0, 3]],
    ['slots', 'port_range_start', [1023, 65_536], [8082]],
    ['slots', 'idle_timeout_s', [-1], [0]],
    ['slots', 'evict_pressure_mb', [-1], [0]],
    ['slots', 'publish_host', ['::1', 'a b', 'http://x'], ['0.0.0.0']],
    ['dispatcher', 'prefetch_timeout_s', [0, -1], [0.5]],
    ['dispatcher', 'prefetch_parallel_cap', [0], [1]],
    ['dispatcher', 'direct_read_timeout_s', [-1, 1, 29.9, 601], [0, 30, 600]],
    ['models', 'file_extensions', [[], ['gguf'], ['.g/f']], [['.gguf', '.bin']]],
    ['models', 'roots', [['here']], [['/tmp']]],
    ['activity', 'retention_days', [0], [1]],
    ['activity', 'max_rows', [99], [100]],
    ['telemetry', 'channel', ['beta'], ['nightly']]
  ]
  const memory: typeof beyond = [
    ['embedding', 'rerank_gateway_url', ['here', 'ftp://x', 'http://a b'], ['https://box.example/svc']],
    ['embedding', 'model', ['a b'], ['', 'far/embedder']],
    ['embedding', 'rerank_connect_timeout_s', [0.01, 10.5], [0.05, 10]],
    ['embedding', 'rerank_read_timeout_s', [0.01, 61], [0.05, 60]],
    ['graph', 'llm_timeout_s', [29, 3601], [30, 3600]]
  ]
  const patches = [
    ...beyond.map(row => [row, (value: unknown): object => ({ [row[0]]: { [row[1]]: value } })] as const),
    ...memory.map(row => [row, (value: unknown): object => ({ memory: { [row[0]]: { [row[1]]: value } } })] as const)
  ]
  for (const [[table, key, refused, taken], patch] of patches) {
    for (const value of refused) {
      const { status, text } = await gateway.call('PATCH', '/api/settings', patch(value))
      t.equal(status, 400, `${table}.${key} = ${JSON.stringify(value)}`)
      t.match(text, key)
    }
    for (const value of taken) {
      const { status, text } = await gateway.call('PATCH', '/api/settings', patch(value))
      t.equal(status, 200, `${table}.${key} = ${JSON.stringify(value)}: ${text.slice(0, 300)}`)
    }
  }
})
