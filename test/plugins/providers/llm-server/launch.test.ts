import { existsSync } from 'node:fs'
import t from 'tap'
import type { EngineClient } from '../../../../kernel/contract/index.js'
import { pluginConformance } from '../../../../kernel/testing/plugin-conformance.js'
import { providerConformance } from '../../../../kernel/testing/provider-conformance.js'
import { locateEmbeddedEngine } from '../../../../plugins/providers/llm-server/embedded-engine.js'
import { engineMetrics, loadedModel, parseMetrics } from '../../../../plugins/providers/llm-server/engine-status.js'
import plugin from '../../../../plugins/providers/llm-server/index.js'
import { containerSpec, isEmbeddedAlone, processCandidates, type EngineChoice } from '../../../../plugins/providers/llm-server/launch.js'
import { buildFor, libraryIn } from '../../../../plugins/providers/llm-server/ref.js'
import { launchInput, registeredProvider, type LaunchWish } from './support.js'

for (const { name, run } of [...providerConformance(registeredProvider()), ...pluginConformance(plugin)]) {
  t.test(name, async t => {
    await run()
    t.pass('keeps to it')
  })
}

t.test('on Vulkan it is told its GPU by ggml\'s variable', t => {
  t.equal(registeredProvider().vulkanVariable, 'GGML_VK_VISIBLE_DEVICES')
  t.end()
})

t.test('ways to run without a container', async t => {
  const embedded = { main: '/e/main.js', library: '/n/index.js', installed: '/s/engines/embedded' }
  const labels = (choice: EngineChoice, wish: LaunchWish = {}): string[] =>
    processCandidates({ ...launchInput(wish), argv: ['--port', '1'] }, choice, embedded).map(c => `${c.label}=${c.command}`)
  const server = 'llama-server=llama-server'
  const inside = 'embedded=node'
  const gpu = process.arch === 'x64' ? [inside] : []
  const table: Array<[choice: EngineChoice, wish: LaunchWish, expected: string[]]> = [
    [{ prefer: 'auto' }, {}, [server, inside, inside]],
    [{ prefer: 'auto', binary: '/opt/ls' }, {}, ['llama-server=/opt/ls', server, inside, inside]],
    [{ prefer: 'auto', binary: 'llama-server' }, {}, [server, inside, inside]],
    [{ prefer: 'auto' }, { device: 'gpu-vulkan' }, [server, ...gpu]],
    [{ prefer: 'auto' }, { device: 'gpu-rocm' }, [server]],
    [{ prefer: 'binary' }, {}, [server]],
    [{ prefer: 'embedded' }, {}, [inside, inside]],
    [{ prefer: 'embedded' }, { device: 'gpu-cuda' }, gpu.length === 0 ? [server] : gpu],
    [{ prefer: 'embedded' }, { device: 'gpu-rocm' }, [server]]
  ]
  for (const [choice, wish, expected] of table) t.same(labels(choice, wish), expected, `${choice.prefer} ${wish.device ?? 'cpu'}`)
  const [, own, installed] = processCandidates({ ...launchInput(), argv: ['--port', '1'] }, { prefer: 'auto' }, embedded)
  const common = { command: 'node', args: ['/e/main.js', '--port', '1'], label: 'embedded', install: 'svc engine install embedded' }
  t.same(own, { ...common, env: {}, requiresFiles: ['/e/main.js', '/n/index.js'] })
  const entry = '/s/engines/embedded/node_modules/node-llama-cpp/dist/index.js'
  t.match(installed, { ...common, env: { SVC_EMBEDDED_LIBRARY: entry }, requiresFiles: ['/e/main.js', entry, /@node-llama-cpp\/\S+\/package\.json$/] })
})

t.test('that nothing but the embedded engine runs a slot is said where it is certain', async t => {
  const only = { prefer: 'embedded' } as const
  t.equal(isEmbeddedAlone({ runtime: null, device: 'cpu' }, only, 'process'), true)
  t.equal(isEmbeddedAlone({ runtime: 'process', device: 'cpu' }, only, 'auto'), true)
  t.equal(isEmbeddedAlone({ runtime: null, device: 'cpu' }, only, 'auto'), false, 'a container where there is an engine for them')
  t.equal(isEmbeddedAlone({ runtime: 'docker', device: 'cpu' }, only, 'process'), false)
  t.equal(isEmbeddedAlone({ runtime: null, device: 'gpu-rocm' }, only, 'process'), false)
  t.equal(isEmbeddedAlone({ runtime: null, device: undefined }, only, 'process'), false)
  t.equal(isEmbeddedAlone({ runtime: 'process', device: 'cpu' }, { prefer: 'auto' }, 'process'), false, 'there may be a llama-server')
})

t.test('a GPU slot needs the GPU build of the library', async t => {
  const embedded = { main: '/e/main.js', library: '/n/index.js', installed: '/i' }
  for (const [device, gpu] of [['gpu-vulkan', 'vulkan'], ['gpu-cuda', 'cuda']] as const) {
    if (buildFor(process.platform, process.arch, gpu) === null) continue
    const [, candidate] = processCandidates({ ...launchInput({ device }), argv: [] }, { prefer: 'auto' }, embedded)
    t.match(candidate, { env: { SVC_EMBEDDED_GPU: gpu }, requiresFiles: ['/e/main.js', libraryIn('/i'), new RegExp(`-${gpu}/package\\.json$`)] })
  }
  t.equal(buildFor('linux', 'arm64', null), '@node-llama-cpp/linux-arm64')
  t.equal(buildFor('linux', 'x64', 'cuda'), '@node-llama-cpp/linux-x64-cuda')
  t.equal(buildFor('linux', 'arm64', 'cuda'), null)
  t.equal(buildFor('linux', 's390x', null), null)
})

t.test('a container gets the arguments, and no launch goes without a model', async t => {
  t.same(containerSpec({ ...launchInput(), argv: ['--port', '1'] }), { command: ['--port', '1'] })
  const nothing = { ...launchInput({ model: null }), argv: [] }
  t.throws(() => containerSpec(nothing), { code: 'slot.config_error', message: /no model/ })
  t.throws(() => processCandidates(nothing, { prefer: 'auto' }, locateEmbeddedEngine('/state')), { code: 'slot.config_error' })
})

t.test('what it serves and where', async t => {
  const provider = registeredProvider()
  t.same(Object.fromEntries(Object.entries(provider.surfaces).map(([name, surface]) => [name, surface.path])), {
    'chat': '/v1/chat/completions', 'completions': '/v1/completions', 'embeddings': '/v1/embeddings', 'rerank': '/v1/rerank',
    'responses': '/v1/responses', 'messages': '/v1/messages', 'infill': '/infill', 'tokenize': '/tokenize',
    'detokenize': '/detokenize', 'count-tokens': '/v1/messages/count_tokens'
  })
  t.equal(provider.defaultProfile?.('cpu', 'embedding'), 'cpu-llm')
  t.equal(provider.defaultProfile?.('gpu-rocm', 'llm'), 'rocm')
  t.equal(provider.defaultProfile?.('gpu-rocm', 'embedding'), 'embed')
  t.equal(provider.defaultProfile?.('gpu-rocm', 'reranking'), 'rerank')
  t.equal(provider.defaultProfile?.('gpu-vulkan', 'reranking'), 'vulkan')
  const { main, library } = locateEmbeddedEngine('/state')
  t.ok(existsSync(main))
  t.ok(existsSync(library), 'node-llama-cpp is a dependency of the tests')
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
