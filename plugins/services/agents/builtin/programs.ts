import { defineAgent, type AgentDescriptor, type AgentWorld } from 'svc-gateway/plugin'

/** What models get that say nothing about their window. */
const USUAL_CONTEXT = 32_768

const text = (value: object): string => `${JSON.stringify(value, null, 2)}\n`
const tools = ({ gateway }: AgentWorld): string => `${gateway}/mcp/admin`
const named = ({ agent }: AgentWorld): Record<string, string> => ({ 'X-svc-Agent': agent })
/** The window of the model under the program's own name for it; nothing where it is unknown. */
function window ({ contextLength: length }: AgentWorld, key: string): Record<string, number> {
  return length === null ? {} : { [key]: length }
}

/** Tokens of an answer, so that there is room for what is asked. */
const answerOf = ({ contextLength }: AgentWorld): number => Math.min(8_192, Math.floor((contextLength ?? USUAL_CONTEXT) / 4))

const codex = defineAgent({
  id: 'codex',
  name: 'Codex',
  description: 'The coding agent of OpenAI',
  licence: { name: 'Apache-2.0', url: 'https://github.com/openai/codex/blob/main/LICENSE' },
  program: 'codex',
  requests: [{ originator: /^codex/ }, { 'user-agent': /^codex/ }],
  wiring: world => {
    const values = {
      'model': world.model,
      'model_provider': 'svc',
      'model_providers.svc': codexProvider(world),
      'mcp_servers.svc': { url: tools(world), http_headers: named(world) },
      ...window(world, 'model_context_window'),
      'check_for_update_on_startup': false,
      'analytics.enabled': false,
      'features.plugins': false,
      'features.apps': false
    }
    return { env: { SVC_KEY: 'none' }, args: Object.entries(values).flatMap(([key, value]) => ['-c', `${key}=${inlineToml(value)}`]) }
  },
  settings: world => [{ ...codexFile, path: ['model_providers', 'svc'], value: codexProvider(world) }],
  hints: ({ model }) => ['It asks for the variable SVC_KEY, with any value: export SVC_KEY=none', `Start it with this model: codex -c model_provider=svc -m ${model}`]
})

const codexFile = { file: '.codex/config.toml', folder: { variable: 'CODEX_HOME', file: 'config.toml' }, format: 'toml' } as const

function codexProvider (world: AgentWorld): Record<string, unknown> {
  return { name: 'svc', base_url: `${world.gateway}/v1`, wire_api: 'responses', env_key: 'SVC_KEY', http_headers: named(world) }
}

function inlineToml (value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  return `{ ${Object.entries(value).map(([key, inner]) => `${JSON.stringify(key)} = ${inlineToml(inner)}`).join(', ')} }`
}

/** It takes unknown models to hold a million tokens, and compacts what it sends to them only near that, unless it is told. */
const claudeCode = defineAgent({
  id: 'claude-code',
  name: 'Claude Code',
  description: 'The coding agent of Anthropic',
  licence: { name: 'proprietary', url: 'https://github.com/anthropics/claude-code/blob/main/LICENSE.md' },
  program: 'claude',
  requests: [{ 'user-agent': /^claude-cli\// }],
  wiring: world => ({
    env: claudeEnv(world),
    files: { 'mcp.json': text({ mcpServers: { svc: { type: 'http', url: tools(world), headers: named(world) } } }) },
    // in one: it would take the words behind for more files
    args: [`--mcp-config=${world.dataDir}/mcp.json`]
  }),
  settings: world => Object.entries(claudeEnv(world)).map(([name, value]) => ({ file: '.claude/settings.json', format: 'json', path: ['env', name], value }))
})

function claudeEnv ({ agent, gateway, model, contextLength }: AgentWorld): Record<string, string> {
  return {
    ANTHROPIC_BASE_URL: gateway,
    ANTHROPIC_AUTH_TOKEN: 'none',
    ANTHROPIC_MODEL: model,
    ANTHROPIC_SMALL_FAST_MODEL: model,
    ANTHROPIC_CUSTOM_HEADERS: `X-svc-Agent: ${agent}`,
    ...contextLength === null ? {} : { CLAUDE_CODE_MAX_CONTEXT_TOKENS: String(contextLength) },
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1'
  }
}

const opencode = defineAgent({
  id: 'opencode',
  name: 'opencode',
  description: 'A coding agent for the terminal',
  licence: { name: 'MIT', url: 'https://github.com/sst/opencode/blob/dev/LICENSE' },
  program: 'opencode',
  requests: [{ 'user-agent': /^opencode\// }],
  wiring: world => ({
    // laid over what its user has
    env: { OPENCODE_CONFIG: `${world.dataDir}/opencode.json`, OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_AUTOUPDATE: '1' },
    files: {
      'opencode.json': text({
        provider: { svc: opencodeProvider(world) },
        model: `svc/${world.model}`,
        small_model: `svc/${world.model}`,
        mcp: { svc: { type: 'remote', url: tools(world), enabled: true, headers: named(world) } }
      })
    }
  }),
  settings: world => [{
    file: '.config/opencode/opencode.json',
    folder: { variable: 'XDG_CONFIG_HOME', file: 'opencode/opencode.json' },
    format: 'json',
    path: ['provider', 'svc'],
    value: opencodeProvider(world)
  }],
  hints: ({ model }) => [`Start it with this model: opencode --model svc/${model}`]
})

function opencodeProvider (world: AgentWorld): Record<string, unknown> {
  const { gateway, model, contextLength } = world
  return {
    npm: '@ai-sdk/openai-compatible',
    name: 'svc',
    options: { baseURL: `${gateway}/v1`, apiKey: 'none', headers: named(world) },
    models: { [model]: { name: model, limit: { context: contextLength ?? USUAL_CONTEXT, output: answerOf(world) } } }
  }
}

const qwenCode = defineAgent({
  id: 'qwen-code',
  name: 'Qwen Code',
  description: 'The coding agent of Qwen',
  licence: { name: 'Apache-2.0', url: 'https://github.com/QwenLM/qwen-code/blob/main/LICENSE' },
  program: 'qwen',
  requests: [{ 'user-agent': /^QwenCode\// }],
  wiring: world => ({
    // its user's own settings stay under these
    env: { ...qwenEnv(world), QWEN_CODE_SYSTEM_SETTINGS_PATH: `${world.dataDir}/settings.json` },
    files: {
      'settings.json': text({
        ...qwenSettings,
        model: { generationConfig: window(world, 'contextWindowSize') },
        mcpServers: { svc: { httpUrl: tools(world), headers: named(world) } }
      })
    }
  }),
  settings: world => [
    { file: '.qwen/settings.json', format: 'json', path: ['security', 'auth', 'selectedType'], value: 'openai' },
    ...Object.entries(window(world, 'contextWindowSize'))
      .map(([name, value]) => ({ file: '.qwen/settings.json', format: 'json', path: ['model', 'generationConfig', name], value } as const)),
    ...Object.entries(qwenEnv(world)).map(([name, value]) => ({ file: '.qwen/settings.json', format: 'json', path: ['env', name], value } as const))
  ]
})

const qwenSettings = {
  security: { auth: { selectedType: 'openai' } }, privacy: { usageStatisticsEnabled: false }, general: { enableAutoUpdate: false }
}

function qwenEnv ({ gateway, model }: AgentWorld): Record<string, string> {
  return { OPENAI_BASE_URL: `${gateway}/v1`, OPENAI_API_KEY: 'none', OPENAI_MODEL: model }
}

const cline = defineAgent({
  id: 'cline',
  name: 'Cline',
  description: 'A coding agent for the terminal and for editors',
  licence: { name: 'Apache-2.0', url: 'https://github.com/cline/cline/blob/main/LICENSE' },
  program: 'cline',
  // others have the same library, but not on this runtime
  requests: [{ 'user-agent': /^ai-sdk\/openai-compatible.* runtime\/bun\// }],
  wiring: world => ({
    // local: a daemon would stay, with this gateway
    env: { CLINE_DIR: world.dataDir, CLINE_DATA_DIR: `${world.dataDir}/data`, CLINE_SESSION_BACKEND_MODE: 'local', CLINE_NO_AUTO_UPDATE: '1' },
    files: {
      'data/settings/global-settings.json': text({ telemetryOptOut: true, autoUpdateEnabled: false }),
      'data/settings/providers.json': text(clineProviders(world)),
      'data/settings/cline_mcp_settings.json': text({ mcpServers: { svc: { type: 'streamableHttp', url: tools(world), headers: named(world), disabled: false } } })
    },
    // it keeps the headers and the window that it finds there
    prepare: [['auth', ...clineAccess(world)]],
    args: ['-P', 'openai', '-m', world.model]
  }),
  hints: world => [`Configure the model: cline auth ${clineAccess(world).join(' ')}`]
})

function clineProviders (world: AgentWorld): Record<string, unknown> {
  const provider = 'openai-compatible'
  const settings = {
    provider, apiKey: 'none', model: world.model, baseUrl: `${world.gateway}/v1`, headers: named(world), ...window(world, 'contextWindow'), maxTokens: answerOf(world)
  }
  return { version: 1, lastUsedProvider: provider, modes: {}, providers: { [provider]: { settings, updatedAt: new Date(0).toISOString(), tokenSource: 'manual' } } }
}

function clineAccess ({ gateway, model }: AgentWorld): string[] {
  return ['-p', 'openai', '-k', 'none', '-m', model, '-b', `${gateway}/v1`]
}

const continueAgent = defineAgent({
  id: 'continue',
  name: 'Continue',
  description: 'A coding agent for the terminal and for editors',
  licence: { name: 'Apache-2.0', url: 'https://github.com/continuedev/continue/blob/main/LICENSE' },
  program: 'cn',
  requests: [],
  wiring: world => ({
    env: { CONTINUE_TELEMETRY_ENABLED: '0' },
    // JSON is YAML as well
    files: {
      'config.yaml': text({
        ...continueHead,
        models: [continueModel(world)],
        mcpServers: [{ name: 'svc', type: 'streamable-http', url: tools(world), requestOptions: { headers: named(world) } }]
      })
    },
    args: ['--config', `${world.dataDir}/config.yaml`]
  }),
  settings: world => [
    ...Object.entries(continueHead).map(([name, value]) => ({ ...continueFile, path: [name], value, onlyIfNew: true } as const)),
    { ...continueFile, path: ['models'], value: [continueModel(world)] }
  ]
})

const continueFile = { file: '.continue/config.yaml', format: 'yaml' } as const
/** It reads no configuration without. */
const continueHead = { name: 'svc', version: '1.0.0', schema: 'v1' }

function continueModel (world: AgentWorld): Record<string, unknown> {
  const { gateway, model } = world
  return {
    name: model, provider: 'openai', model, apiBase: `${gateway}/v1`, apiKey: 'none', capabilities: ['tool_use'], requestOptions: { headers: named(world) },
    defaultCompletionOptions: window(world, 'contextLength')
  }
}

/** It speaks without tools, and ends with 0 even when the model was not reached. */
const aider = defineAgent({
  id: 'aider',
  name: 'aider',
  description: 'Pair programming in the terminal',
  licence: { name: 'Apache-2.0', url: 'https://github.com/Aider-AI/aider/blob/main/LICENSE.txt' },
  program: 'aider',
  requests: [],
  wiring: world => ({
    // its library would fetch prices of models
    env: { OPENAI_API_BASE: `${world.gateway}/v1`, OPENAI_API_KEY: 'none', LITELLM_LOCAL_MODEL_COST_MAP: 'True' },
    files: {
      // JSON is YAML as well; this name stands for all models
      'model-settings.yml': text([{ name: 'aider/extra_params', extra_params: { extra_headers: named(world) } }]),
      'model-metadata.json': text({ [`openai/${world.model}`]: { litellm_provider: 'openai', mode: 'chat', ...window(world, 'max_input_tokens') } })
    },
    args: [
      '--model', `openai/${world.model}`, '--no-analytics', '--no-check-update',
      '--model-settings-file', `${world.dataDir}/model-settings.yml`, '--model-metadata-file', `${world.dataDir}/model-metadata.json`
    ]
  }),
  settings: ({ gateway, model }) => Object.entries({ 'openai-api-base': `${gateway}/v1`, 'openai-api-key': 'none', 'model': `openai/${model}` })
    .map(([key, value]) => ({ file: '.aider.conf.yml', format: 'yaml', path: [key], value }))
})

/** Programs that people install themselves. */
export const agentPrograms: readonly AgentDescriptor[] = [codex, claudeCode, opencode, qwenCode, cline, continueAgent, aider]
