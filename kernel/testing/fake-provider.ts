import { definePlugin, defineProvider, type AnyPlugin, type EngineProvider } from '../contract/index.js'

/** A provider that asks nothing of its host: an llm engine with a built-in model. */
export function createFakeProvider (overrides: Partial<EngineProvider> = {}): EngineProvider {
  return defineProvider({
    name: 'fake',
    title: 'Fake engine',
    family: 'fake',
    devices: ['cpu', 'gpu-vulkan', 'gpu-rocm', 'gpu-cuda', 'npu'],
    slotTypes: ['llm', 'embedding', 'reranking', 'tts', 'transcription', 'image'],
    cli: true,
    needsModel: false,
    image: 'svc-test/fake',
    surfaces: {
      'chat': { path: '/v1/chat/completions', streaming: true, body: 'json' },
      'completions': { path: '/v1/completions', streaming: true, body: 'json' },
      'responses': { path: '/v1/responses', streaming: true, body: 'json' },
      'messages': { path: '/v1/messages', streaming: true, body: 'json' },
      'count-tokens': { path: '/v1/messages/count_tokens', streaming: false, body: 'json', light: true },
      'embeddings': { path: '/v1/embeddings', streaming: false, body: 'json' },
      'rerank': { path: '/v1/rerank', streaming: false, body: 'json' },
      'speech': { path: '/v1/audio/speech', streaming: true, body: 'json' },
      'translation': { path: '/v1/audio/translations', streaming: false, body: 'multipart' },
      'transcription': { path: '/v1/audio/transcriptions', streaming: true, body: 'multipart' }
    },
    health: { path: '/health' },
    exclusivity: 'standard',
    concurrency: () => null,
    containerSpec: ({ argv }) => ({ command: argv }),
    processSpec: ({ argv }) => [{ command: 'node', args: argv, label: 'fake' }],
    ...overrides
  })
}

/** The plugin that brings it. */
export function createFakeProviderPlugin (overrides: Partial<EngineProvider> = {}): AnyPlugin {
  const provider = createFakeProvider(overrides)
  return definePlugin({ name: `provider-${provider.name}`, kind: 'provider', apiVersion: 1, register: ctx => ctx.addProvider(provider) })
}
