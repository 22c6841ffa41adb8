import {
  defineProvider, hardwareSchema, modelRowSchema, profileSchema, slotConfigSchema, type EngineProvider, type LaunchInput,
  type Model,
  type ModelRow, type NamedProfile, type NamedSlotConfig, type Profile, type SlotConfigInput
} from '../../../../kernel/contract/index.js'

/** What launches are planned from, with defaults for everything. */
export function slotOf (config: SlotConfigInput = {}, name = 'agent'): NamedSlotConfig {
  const slot = slotConfigSchema.parse(config)
  return { ...slot, provider: slot.provider ?? 'llm-server', name }
}

export function profileOf (profile: Partial<Profile> = {}, name = 'tuned'): NamedProfile {
  return { ...profileSchema.parse({ image: 'example.org/engine:1', ...profile }), name, seed: false }
}

export function modelOf (row: Partial<ModelRow> = {}, id = 'model'): Model {
  return { ...modelRowSchema.parse({ path: '/models/model.gguf', ...row }), id }
}

export function launchOf (input: Partial<LaunchInput> = {}): LaunchInput {
  return {
    slot: slotOf(),
    device: 'cpu',
    form: 'container',
    bindHost: '0.0.0.0',
    port: 8081,
    model: modelOf(),
    profile: null,
    contextSize: 8192,
    chatTemplatePath: null,
    mmprojPath: null,
    modelRoots: ['/models'],
    hardware: hardwareSchema.parse({}),
    stateDir: '/var/lib/svc/slots/agent',
    ports: {},
    engineKey: 'sk-svc-test',
    ...input
  }
}

export function providerOf (overrides: Partial<EngineProvider> = {}): EngineProvider {
  return defineProvider({
    name: 'test-engine',
    title: 'Test engine',
    family: 'test-engine',
    devices: ['cpu', 'gpu-rocm', 'gpu-vulkan'],
    slotTypes: ['llm', 'embedding', 'reranking'],
    cli: true,
    needsModel: true,
    surfaces: { chat: { path: '/v1/chat/completions', streaming: true, body: 'json' } },
    health: { path: '/health' },
    exclusivity: 'standard',
    flags: { aliases: { c: 'ctx-size' }, managed: ['ctx-size', 'port'] },
    argvSegments: ({ contextSize, port }) => ({ base: ['--port', String(port)], slot_overrides: ['--ctx-size', String(contextSize)] }),
    containerSpec: ({ argv }) => ({ command: argv }),
    ...overrides
  })
}
