import { defineAgent, type AgentPersona, type AgentWorld } from 'svc-gateway/plugin'

/** It refuses to start with less. */
const LEAST_CONTEXT = 64_000

/** An agent with tools, memory and a dashboard. Everything it reads and writes is below its own folder. */
export const hermes = defineAgent({
  id: 'hermes',
  name: 'Hermes',
  description: 'An agent with its own tools, memory and dashboard',
  licence: { name: 'MIT', url: null },
  program: 'hermes',
  requests: [],
  minContext: LEAST_CONTEXT,
  install: {
    // aiohttp: its API server needs it and no extra brings it
    python: { package: 'hermes-agent', version: '0.19.0', also: ['hermes-agent[mcp]', 'aiohttp'], pythons: [13, 12, 11], bytes: 228_000_000 }
  },
  server: {
    port: 9119,
    probe: '/api/status',
    args: ({ port }) => ['dashboard', '--host', '127.0.0.1', '--port', String(port), '--no-open'],
    socket: ({ secret }) => `/api/ws?token=${secret}`
  },
  skills: 'skills',
  // it ends with 0 although its model was not reached
  task: { args: (prompt, report) => ['-z', prompt, '--usage-file', report], problem: problemOf },
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

function problemOf (report: string | null): string | null {
  try {
    const { failed } = JSON.parse(report ?? '{}') as { readonly failed?: unknown }
    return failed === true ? 'its report says that the run failed' : null
  } catch {
    return 'its report cannot be read'
  }
}

/** With the length of the window told and installs forbidden, nothing goes out and it does not probe forty paths. */
function configOf ({ agent, gateway, model, contextLength, personas, persona }: AgentWorld): string {
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
    'agent:',
    // what it makes of the personality itself, once it is told of one while it runs
    `  system_prompt: ${yamlText(overlayOf(personas.find(({ id }) => id === persona)))}`,
    '  personalities:',
    ...personas.flatMap(personality),
    'display:',
    `  personality: ${yamlText(persona)}`,
    ''
  ].join('\n')
}

function overlayOf (persona: AgentPersona | undefined): string {
  const tone = persona?.tone ?? null
  return [persona?.systemPrompt ?? '', ...tone === null ? [] : [`Tone: ${tone}`]].filter(line => line !== '').join('\n')
}

function personality ({ id, summary, systemPrompt, tone }: AgentPersona): string[] {
  return [
    // a name such as `no` or `007` would be another kind of value
    `    ${yamlText(id)}:`,
    `      description: ${yamlText(summary)}`,
    `      system_prompt: ${yamlText(systemPrompt)}`,
    ...tone === null ? [] : [`      tone: ${yamlText(tone)}`]
  ]
}

/** As JSON, but for what YAML does not take as it is, or takes for the end of a line; a half of a character is no character. */
function yamlText (text: string): string {
  return JSON.stringify(text.replace(/[\ud800-\udfff]/gu, '\ufffd')).replace(/[^\u0020-\u007e]/gu, character => {
    const code = character.codePointAt(0)!.toString(16)
    return code.length > 4 ? `\\U${code.padStart(8, '0')}` : `\\u${code.padStart(4, '0')}`
  })
}
