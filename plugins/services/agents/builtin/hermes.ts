import { defineAgent, type AgentWorld } from 'svc-gateway/plugin'

/** It refuses to start with less. */
const LEAST_CONTEXT = 64_000

/** An agent with tools, memory and a dashboard. Everything it reads and writes is below its own folder. */
export const hermes = defineAgent({
  id: 'hermes',
  name: 'Hermes',
  description: 'An agent with tools, memory and a dashboard of its own',
  licence: { name: 'MIT', url: null },
  program: 'hermes',
  requests: [],
  minContext: LEAST_CONTEXT,
  install: {
    // aiohttp: its API server needs it and no extra brings it
    python: { package: 'hermes-agent', version: '0.19.0', also: ['hermes-agent[mcp]', 'aiohttp'], pythons: [13, 12, 11], bytes: 228_000_000 }
  },
  server: { port: 9119, probe: '/api/status', args: ({ port }) => ['dashboard', '--host', '127.0.0.1', '--port', String(port), '--no-open'] },
  wiring: world => ({
    env: { HERMES_HOME: world.dataDir, HERMES_DASHBOARD_SESSION_TOKEN: world.secret },
    files: { 'config.yaml': configOf(world) }
  }),
  settings: ({ gateway, model, contextLength }) => [{
    file: '.hermes/config.yaml',
    folder: { variable: 'HERMES_HOME', file: 'config.yaml' },
    format: 'yaml',
    path: ['model'],
    value: { provider: 'custom', base_url: `${gateway}/v1`, default: model, api_key: 'none', context_length: contextLength ?? LEAST_CONTEXT }
  }]
})

/** With the length of the window told and installs forbidden, nothing goes out and it does not probe forty paths. */
function configOf ({ agent, gateway, model, contextLength }: AgentWorld): string {
  return [
    'model:',
    '  provider: custom',
    `  base_url: ${JSON.stringify(`${gateway}/v1`)}`,
    `  default: ${JSON.stringify(model)}`,
    '  api_key: none',
    `  context_length: ${contextLength ?? LEAST_CONTEXT}`,
    // the headers that go to this address: nothing else in its requests tells whose they are
    'custom_providers:',
    '  - name: svc',
    `    base_url: ${JSON.stringify(`${gateway}/v1`)}`,
    '    extra_headers:',
    `      X-svc-Agent: ${JSON.stringify(agent)}`,
    'security:',
    '  allow_lazy_installs: false',
    'mcp_servers:',
    '  svc:',
    `    url: ${JSON.stringify(`${gateway}/mcp/admin`)}`,
    '    headers:',
    `      X-svc-Agent: ${JSON.stringify(agent)}`,
    ''
  ].join('\n')
}
