import { defineAgent } from 'svc-gateway/plugin'
import { piTools } from './pi-tools.js'

/** What a model gets that says nothing about its window. */
const USUAL_CONTEXT = 32_768

/** A coding agent for the terminal. Tools of servers come to it by an extension: it speaks no MCP by design. */
export const pi = defineAgent({
  id: 'pi',
  name: 'pi',
  description: 'A small coding agent for the terminal',
  licence: { name: 'MIT', url: 'https://github.com/badlogic/pi-mono/blob/main/LICENSE' },
  program: 'pi',
  requests: [],
  install: { npm: { package: '@mariozechner/pi-coding-agent', version: '0.73.1', bytes: 214_000_000 } },
  probe: { args: ['--mode', 'rpc', '--no-session'], line: '{"type":"get_state"}', expect: /"command":"get_state","success":true/ },
  task: { args: prompt => ['-p', '--no-session', prompt] },
  skills: 'skills',
  wiring: ({ agent, gateway, model, contextLength, dataDir }) => {
    const contextWindow = contextLength ?? USUAL_CONTEXT
    const provider = {
      baseUrl: `${gateway}/v1`,
      api: 'openai-completions',
      apiKey: 'none',
      headers: { 'X-svc-Agent': agent },
      compat: { supportsDeveloperRole: false },
      models: [{ id: model, contextWindow, maxTokens: Math.min(16_384, Math.floor(contextWindow / 4)) }]
    }
    return {
      // PI_OFFLINE: nothing is looked up outside
      env: { PI_CODING_AGENT_DIR: dataDir, PI_OFFLINE: '1' },
      files: {
        'models.json': `${JSON.stringify({ providers: { svc: provider } }, null, 2)}\n`,
        'extensions/svc-tools.js': piTools(`${gateway}/mcp/admin`, agent)
      },
      // its default provider is another one
      args: ['--model', `svc/${model}`]
    }
  },
  settings: ({ agent, gateway, model, contextLength }) => [{
    file: '.pi/agent/models.json',
    folder: { variable: 'PI_CODING_AGENT_DIR', file: 'models.json' },
    format: 'json',
    path: ['providers', 'svc'],
    value: {
      baseUrl: `${gateway}/v1`,
      api: 'openai-completions',
      apiKey: 'none',
      headers: { 'X-svc-Agent': agent },
      compat: { supportsDeveloperRole: false },
      models: [{ id: model, contextWindow: contextLength ?? USUAL_CONTEXT }]
    }
  }],
  hints: ({ model }) => [`Start it with this model: pi --model svc/${model}`]
})
