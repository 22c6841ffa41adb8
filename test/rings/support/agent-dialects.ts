import { piTools } from '../../../plugins/services/agents/builtin/pi-tools.js'
import { agentPrograms, type AgentProgram } from './agent-programs.js'

/** A program that is told to speak another dialect than that of chat. */
export interface DialectProgram extends AgentProgram {
  readonly name: string
  /** As the gateway lists its requests. */
  readonly surface: 'chat' | 'messages' | 'responses'
}

const json = (value: object): string => `${JSON.stringify(value, null, 2)}\n`

/** By the package of the AI SDK that speaks for its provider. */
function opencode (dialect: string, npm: string, { surface, at = '/v1' }: { readonly surface: DialectProgram['surface'], readonly at?: string }): DialectProgram {
  return {
    name: `opencode in ${dialect}`,
    client: 'opencode',
    surface,
    files: gateway => ({
      '.config/opencode/opencode.json': json({
        provider: { svc: { npm, name: 'svc', options: { baseURL: `${gateway}${at}`, apiKey: 'none' }, models: { scripted: { limit: { context: 131_072, output: 4_096 } } } } },
        model: 'svc/scripted',
        small_model: 'svc/scripted'
      })
    }),
    env: () => ({ OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_AUTOUPDATE: '1' }),
    ask: prompt => ['run', prompt]
  }
}

function qwenCode (dialect: string, authType: string, surface: DialectProgram['surface'], env: (gateway: string) => Readonly<Record<string, string>>): DialectProgram {
  return {
    name: `qwen-code in ${dialect}`,
    client: 'qwen-code',
    surface,
    files: () => ({ '.qwen/settings.json': json({ security: { auth: { selectedType: authType } }, privacy: { usageStatisticsEnabled: false } }) }),
    env,
    ask: prompt => ['--auth-type', authType, '-m', 'scripted', '--approval-mode', 'yolo', '-p', prompt]
  }
}

function cline (dialect: string, provider: string, surface: DialectProgram['surface'], at: string, model = 'scripted'): DialectProgram {
  return {
    name: `cline in ${dialect}`,
    client: 'cline',
    surface,
    files: gateway => ({
      '.cline/data/settings/providers.json': json({
        version: 1, lastUsedProvider: provider, modes: {},
        providers: { [provider]: { settings: { provider, apiKey: 'none', model, baseUrl: `${gateway}${at}` }, updatedAt: '2026-01-01T00:00:00.000Z', tokenSource: 'manual' } }
      })
    }),
    ask: prompt => ['-P', provider, '-m', model, prompt]
  }
}

function continues (dialect: string, provider: string, surface: DialectProgram['surface'], at: string): DialectProgram {
  return {
    name: `continue in ${dialect}`,
    client: 'continue',
    surface,
    files: gateway => ({
      '.continue/config.yaml': 'name: local\nversion: 1.0.0\nschema: v1\nmodels:\n  - name: scripted\n' +
        `    provider: ${provider}\n    model: scripted\n    apiBase: ${gateway}${at}\n    apiKey: none\n    capabilities:\n      - tool_use\n`
    }),
    env: () => ({ CONTINUE_TELEMETRY_ENABLED: '0' }),
    ask: (prompt, _gateway, home) => ['--config', `${home}/.continue/config.yaml`, '--auto', '-p', prompt]
  }
}

/** It speaks no MCP: the tools come by the extension that the gateway writes. */
function pi (dialect: string, speaks: string, surface: DialectProgram['surface'], at: string): DialectProgram {
  return {
    name: `pi in ${dialect}`,
    client: 'pi',
    isConnected: false,
    surface,
    files: gateway => ({
      '.pi/agent/models.json': json({
        providers: { svc: { baseUrl: `${gateway}${at}`, api: speaks, apiKey: 'none', models: [{ id: 'scripted', contextWindow: 131_072, maxTokens: 16_384 }] } }
      }),
      '.pi/agent/extensions/svc-tools.js': piTools(`${gateway}/mcp/admin`, 'pi')
    }),
    env: () => ({ PI_OFFLINE: '1' }),
    ask: prompt => ['--model', 'svc/scripted', '-p', prompt]
  }
}

export const dialectPrograms: readonly DialectProgram[] = [
  { name: 'gemini-cli, which speaks no other', surface: 'chat', ...agentPrograms.find(({ client }) => client === 'gemini-cli')! },
  opencode('Responses', '@ai-sdk/openai', { surface: 'responses' }),
  opencode('Messages', '@ai-sdk/anthropic', { surface: 'messages' }),
  opencode('Gemini', '@ai-sdk/google', { surface: 'chat', at: '/v1beta' }),
  qwenCode('Messages', 'anthropic', 'messages', gateway => ({ ANTHROPIC_BASE_URL: gateway, ANTHROPIC_API_KEY: 'none', ANTHROPIC_MODEL: 'scripted' })),
  qwenCode('Gemini', 'gemini', 'chat', gateway => ({ GOOGLE_GEMINI_BASE_URL: gateway, GEMINI_API_KEY: 'none', GEMINI_MODEL: 'scripted' })),
  cline('Responses', 'openai-native', 'responses', '/v1'),
  cline('Messages', 'anthropic', 'messages', '/v1'),
  // with others it leaves out its tools for one that it thinks their maker has
  cline('Gemini', 'gemini', 'chat', '/v1beta', 'gemini-3-pro-preview'),
  continues('Messages', 'anthropic', 'messages', '/v1/'),
  continues('chat at the address of Ollama', 'ollama', 'chat', ''),
  pi('Responses', 'openai-responses', 'responses', '/v1'),
  pi('Messages', 'anthropic-messages', 'messages', ''),
  pi('Gemini', 'google-generative-ai', 'chat', '/v1beta')
]
