import type { Want } from './scripted-model.js'

/** How a program that people run agents with is pointed at a model, and asked once. */
export interface AgentProgram {
  /** As `svc mcp connect` calls it. */
  readonly client: string
  /** Files below its home that say where the model is; `svc mcp connect` adds the tools. */
  readonly files: (model: string) => Readonly<Record<string, string>>
  readonly env?: (model: string, home: string) => Readonly<Record<string, string>>
  /** Run before, with the same environment. */
  readonly prepare?: (model: string) => readonly string[]
  readonly ask: (prompt: string, model: string, home: string) => readonly string[]
  /** False for one that `svc mcp connect` does not know. */
  readonly isConnected?: false
}

/** How a program is asked once that `svc agent` has pointed at the gateway: its model and its tools. */
export interface OwnProgram {
  /** As `svc agent` calls it. */
  readonly agent: string
  /** What follows the `--` of `svc agent run`. */
  readonly words: (prompt: string) => readonly string[]
  /** Arguments of the program alone once `svc agent connect --write` has written its configuration, by its hints. */
  readonly bare: (prompt: string) => readonly string[]
  readonly bareEnv?: Readonly<Record<string, string>>
  /** A run that the hints ask for. */
  readonly prepare?: (gateway: string) => readonly string[]
  /** It uses no tools, and alone it tells nobody who it is. */
  readonly plain?: true
  /** `svc agent connect` brings it no tools of the gateway. */
  readonly bareWithoutTools?: true
}

/** The tool of its own with which each runs a command. */
export const ownTools: Readonly<Record<string, (command: string) => Want>> = {
  'codex': cmd => called('exec_command', { cmd }),
  'claude-code': command => called('Bash', { command, description: 'Writes a file' }),
  'opencode': command => called('bash', { command, description: 'Writes a file' }),
  'qwen-code': command => called('run_shell_command', { command, is_background: false }),
  'gemini-cli': command => called('run_shell_command', { command }),
  'cline': command => called('run_commands', { commands: [command] }),
  'continue': command => called('Bash', { command }),
  'pi': command => called('bash', { command })
}

const called = (tool: string, args: object): Want => ({ tool, args: JSON.stringify(args) })

const json = (value: object): string => `${JSON.stringify(value, null, 2)}\n`

export const agentPrograms: readonly AgentProgram[] = [
  {
    client: 'claude-code',
    files: () => ({}),
    env: model => ({
      ANTHROPIC_BASE_URL: model, ANTHROPIC_AUTH_TOKEN: 'none', ANTHROPIC_MODEL: 'scripted', ANTHROPIC_SMALL_FAST_MODEL: 'scripted',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', ENABLE_TOOL_SEARCH: 'false'
    }),
    ask: prompt => ['-p', prompt, '--allowedTools', 'mcp__svc__slot_list']
  },
  {
    client: 'codex',
    files: model => ({
      '.codex/config.toml': `model = "scripted"\nmodel_provider = "svc"\n\n[model_providers.svc]\nname = "svc"\nbase_url = "${model}/v1"\n` +
        'wire_api = "responses"\nenv_key = "SVC_KEY"\n\n[analytics]\nenabled = false\n\n[features]\nplugins = false\napps = false\n'
    }),
    env: () => ({ SVC_KEY: 'none' }),
    ask: prompt => ['exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', prompt]
  },
  {
    client: 'opencode',
    files: model => ({
      '.config/opencode/opencode.json': json({
        provider: {
          svc: {
            npm: '@ai-sdk/openai-compatible', name: 'svc', options: { baseURL: `${model}/v1`, apiKey: 'none' },
            models: { scripted: { name: 'scripted', limit: { context: 131_072, output: 4_096 } } }
          }
        },
        model: 'svc/scripted',
        small_model: 'svc/scripted'
      })
    }),
    env: () => ({ OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_AUTOUPDATE: '1' }),
    ask: prompt => ['run', prompt]
  },
  {
    client: 'qwen-code',
    files: () => ({ '.qwen/settings.json': json({ security: { auth: { selectedType: 'openai' } }, privacy: { usageStatisticsEnabled: false } }) }),
    env: model => ({ OPENAI_BASE_URL: `${model}/v1`, OPENAI_API_KEY: 'none', OPENAI_MODEL: 'scripted' }),
    ask: prompt => ['--approval-mode', 'yolo', '-p', prompt]
  },
  {
    client: 'gemini-cli',
    files: () => ({ '.gemini/settings.json': json({ security: { auth: { selectedType: 'gemini-api-key' } }, privacy: { usageStatisticsEnabled: false } }) }),
    env: model => ({ GOOGLE_GEMINI_BASE_URL: model, GEMINI_API_KEY: 'none' }),
    ask: prompt => ['--skip-trust', '--approval-mode', 'yolo', '-m', 'gemini-2.5-pro', '-p', prompt]
  },
  {
    client: 'cline',
    files: () => ({}),
    prepare: model => ['auth', '-p', 'openai', '-k', 'none', '-m', 'scripted', '-b', `${model}/v1`],
    ask: prompt => ['-P', 'openai', '-m', 'scripted', prompt]
  },
  {
    client: 'continue',
    files: model => ({
      '.continue/config.yaml': 'name: local\nversion: 1.0.0\nschema: v1\nmodels:\n  - name: scripted\n    provider: openai\n    model: scripted\n' +
        `    apiBase: ${model}/v1\n    apiKey: none\n    capabilities:\n      - tool_use\n`
    }),
    env: () => ({ CONTINUE_TELEMETRY_ENABLED: '0' }),
    ask: (prompt, _model, home) => ['--config', `${home}/.continue/config.yaml`, '--auto', '-p', prompt]
  },
  {
    client: 'hermes',
    files: model => ({
      '.hermes/config.yaml': `model:\n  provider: custom\n  base_url: ${model}/v1\n  default: scripted\n  api_key: none\n  context_length: 131072\n` +
        'security:\n  allow_lazy_installs: false\n'
    }),
    env: (_model, home) => ({ HERMES_HOME: `${home}/.hermes` }),
    ask: prompt => ['-z', prompt]
  }
]

const same = (words: OwnProgram['words']): Pick<OwnProgram, 'words' | 'bare'> => ({ words, bare: words })

export const ownPrograms: readonly OwnProgram[] = [
  {
    agent: 'codex',
    words: prompt => ['exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', prompt],
    bare: prompt => ['-c', 'model_provider=svc', '-m', 'scripted', 'exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', prompt],
    bareEnv: { SVC_KEY: 'none' }
  },
  // the prompt comes first: it must not be taken for a part of what the gateway puts before it
  { agent: 'claude-code', ...same(prompt => [prompt, '-p', '--allowedTools', 'mcp__svc__slot_list', 'Bash']) },
  { agent: 'opencode', words: prompt => ['run', prompt], bare: prompt => ['run', '--model', 'svc/scripted', prompt] },
  { agent: 'qwen-code', ...same(prompt => ['--approval-mode', 'yolo', '-p', prompt]) },
  { agent: 'cline', ...same(prompt => [prompt]), prepare: gateway => ['auth', '-p', 'openai', '-k', 'none', '-m', 'scripted', '-b', `${gateway}/v1`] },
  { agent: 'continue', ...same(prompt => ['--auto', '-p', prompt]) },
  { agent: 'pi', words: prompt => ['-p', prompt], bare: prompt => ['--model', 'svc/scripted', '-p', prompt], bareWithoutTools: true },
  { agent: 'aider', ...same(prompt => ['--no-git', '--yes-always', '--no-show-release-notes', '--message', prompt]), plain: true }
]
