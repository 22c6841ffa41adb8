import { existsSync } from 'node:fs'
import t from 'tap'
import type { EngineClient } from '../../../../kernel/contract/index.js'
import { pluginConformance } from '../../../../kernel/testing/plugin-conformance.js'
import { providerConformance } from '../../../../kernel/testing/provider-conformance.js'
import { locateEmbeddedEngine } from '../../../../plugins/providers/llm-server/embedded-engine.js'
import { engineMetrics, loadedModel, parseMetrics } from '../../../../plugins/providers/llm-server/engine-status.js'
import plugin from '../../../../plugins/providers/llm-server/index.js'
import { containerSpec, processCandidates, type EngineChoice } from '../../../../plugins/providers/llm-server/launch.js'
import { launchInput, registeredProvider, type LaunchWish } from './support.js'

for (const { name, run } of [...providerConformance(registeredProvider()), ...pluginConformance(plugin)]) {
  t.test(name, async t => {
    await run()
    t.pass('keeps to it')
  })
}

t.test('ways to run without a container', async t => {
  const embedded = { main: '/e/main.js', marker: '/n/index.js' }
  const labels = (choice: EngineChoice, wish: LaunchWish = {}): string[] =>
    processCandidates({ ...launchInput(wish), argv: ['--port', '1'] }, choice, embedded).map(c => `${c.label}=${c.command}`)
  const table: Array<[choice: EngineChoice, wish: LaunchWish, expected: string[]]> = [
    [{ prefer: 'auto' }, {}, ['llama-server=llama-server', 'embedded=node']],
    [{ prefer: 'auto', binary: '/opt/ls' }, {}, ['llama-server=/opt/ls', 'llama-server=llama-server', 'embedded=node']],
    [{ prefer: 'auto', binary: 'llama-server' }, {}, ['llama-server=llama-server', 'embedded=node']],
    [{ prefer: 'auto' }, { device: 'gpu-vulkan' }, ['llama-server=llama-server']],
    [{ prefer: 'binary' }, {}, ['llama-server=llama-server']],
    [{ prefer: 'embedded' }, {}, ['embedded=node']],
    [{ prefer: 'embedded' }, { device: 'gpu-cuda' }, ['llama-server=llama-server']]
  ]
  for (const [choice, wish, expected] of table) t.same(labels(choice, wish), expected)
  const [, inProcess] = processCandidates({ ...launchInput(), argv: ['--port', '1'] }, { prefer: 'auto' }, embedded)
  t.same(inProcess, { command: 'node', args: ['/e/main.js', '--port', '1'], label: 'embedded', requiresFiles: ['/e/main.js', '/n/index.js'] })
})

t.test('a container gets the arguments, and no launch goes without a model', async t => {
  t.same(containerSpec({ ...launchInput(), argv: ['--port', '1'] }), { command: ['--port', '1'] })
  const nothing = { ...launchInput({ model: null }), argv: [] }
  t.throws(() => containerSpec(nothing), { code: 'slot.config_error', message: /no model/ })
  t.throws(() => processCandidates(nothing, { prefer: 'auto' }, locateEmbeddedEngine()), { code: 'slot.config_error' })
})

t.test('what it serves and where', async t => {
  const provider = registeredProvider()
  t.same(Object.fromEntries(Object.entries(provider.surfaces).map(([name, surface]) => [name, surface.path])), {
    'chat': '/v1/chat/completions', 'completions': '/v1/completions', 'embeddings': '/v1/embeddings', 'rerank': '/v1/rerank',
    'responses': '/v1/responses', 'messages': '/v1/messages', 'count-tokens': '/v1/messages/count_tokens'
  })
  t.equal(provider.defaultProfile?.('cpu', 'embedding'), 'cpu-llm')
  t.equal(provider.defaultProfile?.('gpu-rocm', 'llm'), 'rocm')
  t.equal(provider.defaultProfile?.('gpu-rocm', 'embedding'), 'embed')
  t.equal(provider.defaultProfile?.('gpu-rocm', 'reranking'), 'rerank')
  t.equal(provider.defaultProfile?.('gpu-vulkan', 'reranking'), 'vulkan')
  const { main, marker } = locateEmbeddedEngine()
  t.ok(existsSync(main))
  t.ok(existsSync(marker), 'node-llama-cpp is a dependency of the tests')
})

t.test('the plugin checks its configuration', async t => {
  const valid = (config: object): boolean => plugin.configSchema?.safeParse(config).success === true
  t.same([{}, { binary: '/usr/bin/llama-server' }, { binary: 'llama-server', prefer: 'binary' }].map(valid), [true, true, true])
  t.same([{ binary: 'bin/llama-server' }, { binary: '' }, { prefer: 'gpu' }, { engine: 'x' }].map(valid), [false, false, false, false])
})

t.test('what an engine tells about itself', async t => {
  const client = (answers: Record<string, { status: number, body: unknown }>): EngineClient => ({
    address: { host: '127.0.0.1', port: 1 },
    request: async ({ path }) => {
      const { status, body: given } = answers[path]!
      const text = typeof given === 'string' ? given : JSON.stringify(given)
      const body = (async function* () { yield Buffer.from(text) })()
      return { status, headers: {}, body, json: async () => JSON.parse(text) as unknown, text: async () => text }
    }
  })
  const never = new AbortController().signal
  t.equal(await loadedModel(client({ '/v1/models': { status: 200, body: { data: [{ id: 'a' }] } } }), never), 'a')
  t.equal(await loadedModel(client({ '/v1/models': { status: 200, body: { data: [] } } }), never), null)
  t.equal(await loadedModel(client({ '/v1/models': { status: 500, body: { error: 'x' } } }), never), null)
  const text = 'llamacpp:requests_processing 2\nllamacpp:predicted_tokens_seconds 51.5\nllamacpp:other nan\n'
  t.same(parseMetrics(text), { requestsProcessing: 2, tokensPerSecond: 51.5 })
  t.same(await engineMetrics(client({ '/metrics': { status: 200, body: text } }), never), { requestsProcessing: 2, tokensPerSecond: 51.5 })
  const slots = [{ is_processing: true }, { is_processing: false }]
  t.same(await engineMetrics(client({ '/metrics': { status: 501, body: '' }, '/slots': { status: 200, body: slots } }), never),
    { requestsProcessing: 1 })
})
