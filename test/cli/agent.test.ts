import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { defineAgent, definePlugin } from '../../kernel/contract/index.js'
import { createTestGateway } from '../../kernel/testing/index.js'
import apiAgents from '../../plugins/api/agents/index.js'
import llmServer from '../../plugins/providers/llm-server/index.js'
import services from '../../plugins/api/services/index.js'
import personas from '../../plugins/services/agent-personas/index.js'
import agents from '../../plugins/services/agents/index.js'
import { fakeApi, refuse, run, type Finished } from './support.js'

/** Writes down what it was called with, and ends as it is told to. */
const PROGRAM = '#!/bin/sh\nprintf \'%s\\n\' "$@" > "$OUT"\nenv | sort > "$OUT.env"\nexit "${ENDS_WITH:-0}"\n'

const scribe = definePlugin({
  name: 'svc-scribe',
  kind: 'service',
  apiVersion: 1,
  register: ctx => ctx.addAgent(defineAgent({
    id: 'scribe',
    name: 'Scribe',
    description: 'Writes what it is told',
    licence: { name: 'MIT', url: null },
    program: 'scribe',
    requests: [{ 'user-agent': /^scribe/ }],
    wiring: ({ agent, gateway, model, contextLength, dataDir }) => ({
      env: { SCRIBE_URL: `${gateway}/v1` },
      files: { 'conf/scribe.json': JSON.stringify({ agent, model, contextLength }) },
      args: ['--config', `${dataDir}/conf/scribe.json`]
    }),
    settings: ({ gateway }) => [
      { file: '.scribe.toml', format: 'toml', path: ['servers', 'svc'], value: { url: gateway, tags: ['a', 'b'] } },
      { file: '.scribe.yml', format: 'yaml', path: ['models'], value: [{ name: 'agent', on: true, headers: { 'X-svc-Agent': 'scribe' } }] }
    ],
    hints: () => ['Then start it with --server svc']
  }))
})

const gateway = await createTestGateway({
  plugins: [services, agents, personas, apiAgents, llmServer, scribe],
  pluginConfig: { 'api-services': { systemctl: '/nonexistent', downloads: false } },
  files: { 'etc/svc/svc.toml': '[slots]\nautostart = false\n', 'etc/svc/slots/agent.toml': 'type = "llm"\ndevice = "cpu"\nmodel = "tiny"\ncontext_size = 8192\n' }
})
const home = await mkdtemp(join(tmpdir(), 'svc-cli-agent-'))
const bin = join(home, 'bin')
await mkdir(bin)
for (const program of ['scribe', 'cline', 'codex']) {
  await writeFile(join(bin, program), PROGRAM)
  await chmod(join(bin, program), 0o755)
}
t.teardown(async () => {
  await gateway.close()
  await rm(home, { recursive: true, force: true })
})
const { baseUrl } = gateway
const svc = (words: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Finished> =>
  run([...words, '--url', baseUrl], { env: { HOME: home, PATH: `${bin}:/usr/bin:/bin`, ...env }, cwd: home })
const read = (file: string): Promise<string> => readFile(join(home, file), 'utf8')

t.test('svc agent list tells which agents there are and where their programs stand', async t => {
  const { code, stdout } = await svc(['agent', 'list'])
  t.equal(code, 0)
  // a line has 80 columns, and the folder may be a long one
  t.match(stdout, new RegExp(`scribe +${home.slice(0, 30)}\\S+ +- +W`))
  t.match(stdout, /aider +aider, not on PATH/)
  const { known } = JSON.parse((await svc(['agent', 'list', '--json'])).stdout) as { known: Array<{ name: string }> }
  t.strictSame(known.map(({ name }) => name).toSorted(),
    ['aider', 'claude-code', 'cline', 'codex', 'continue', 'hermes', 'opencode', 'pi', 'qwen-code', 'scribe'])
})

t.test('svc agent run starts an agent of a plugin on this gateway, and ends as the agent does', async t => {
  const out = join(home, 'said')
  const words = ['agent', 'run', 'scribe', '--url', baseUrl, '--', '-p', 'two words', '--url']
  const ended = await run(words, { env: { HOME: home, PATH: `${bin}:/usr/bin:/bin`, OUT: out, ENDS_WITH: '7' }, cwd: home })
  t.strictSame(ended, { code: 7, stdout: '', stderr: '' }, 'with its exit code and nothing of ours')
  const config = join(home, '.local/state/svc/agents/scribe/conf/scribe.json')
  t.equal(await read('said'), `--config\n${config}\n-p\ntwo words\n--url\n`)
  t.match(await read('said.env'), new RegExp(`^SCRIBE_URL=${baseUrl}/v1$`, 'm'))
  t.strictSame(JSON.parse(await readFile(config, 'utf8')), { agent: 'scribe', model: 'svc/agent', contextLength: 8192 })
})

t.test('svc agent run tells a program of the gateway first where only the program can write that down', async t => {
  const out = join(home, 'cline-said')
  const failed = await svc(['agent', 'run', 'cline'], { OUT: out, ENDS_WITH: '3' })
  t.match(failed, { code: 1, stderr: /cline auth ended with 3: it could not be connected to the gateway/ })
  t.equal(await read('cline-said'), `auth\n-p\nopenai\n-k\nnone\n-m\nsvc/agent\n-b\n${baseUrl}/v1\n`)
})

t.test('svc agent run points each program that is built in at the gateway', async t => {
  const own = join(home, 'programs')
  await mkdir(own)
  const [v1, tools, headers] = [`${baseUrl}/v1`, `${baseUrl}/mcp/admin`, (agent: string) => ({ 'X-svc-Agent': agent })]
  const provider = { name: 'svc', options: { baseURL: v1, apiKey: 'none', headers: headers('opencode') } }
  const openai = { OPENAI_API_KEY: 'none' }
  type Program = readonly [agent: string, program: string, args: RegExp, env: object, file?: string, text?: object]
  const programs: readonly Program[] = [
    ['codex', 'codex', new RegExp(`^-c\nmodel="svc/agent"\n[^]*model_providers\\.svc=\\{ [^\n]*"${v1}", "wire_api" = "responses"[^\n]*"X-svc-Agent" = "codex"[^]*mcp_servers\\.svc=\\{ "url" = "${tools}"[^]*model_context_window=8192\n-c\ncheck_for_update_on_startup=false\n[^]*\nhello\n$`),
      { SVC_KEY: 'none' }],
    ['claude-code', 'claude', /^--mcp-config=\S+mcp\.json\nhello\n$/,
      { CLAUDE_CODE_MAX_CONTEXT_TOKENS: '8192', ANTHROPIC_BASE_URL: baseUrl, ANTHROPIC_AUTH_TOKEN: 'none', ANTHROPIC_MODEL: 'svc/agent', ANTHROPIC_CUSTOM_HEADERS: 'X-svc-Agent: claude-code', CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1' },
      'mcp.json', { mcpServers: { svc: { type: 'http', url: tools, headers: headers('claude-code') } } }],
    ['opencode', 'opencode', /^hello\n$/, { OPENCODE_CONFIG: /opencode\.json$/, OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_AUTOUPDATE: '1' },
      'opencode.json', { model: 'svc/svc/agent', provider: { svc: { ...provider, models: { 'svc/agent': { limit: { context: 8192 } } } } }, mcp: { svc: { url: tools, headers: headers('opencode') } } }],
    ['qwen-code', 'qwen', /^hello\n$/, { ...openai, OPENAI_BASE_URL: v1, OPENAI_MODEL: 'svc/agent', QWEN_CODE_SYSTEM_SETTINGS_PATH: /settings\.json$/ },
      'settings.json', { security: { auth: { selectedType: 'openai' } }, general: { enableAutoUpdate: false }, model: { generationConfig: { contextWindowSize: 8192 } }, mcpServers: { svc: { httpUrl: tools, headers: headers('qwen-code') } } }],
    ['cline', 'cline', /^-P\nopenai\n-m\nsvc\/agent\nhello\n$/, { CLINE_DIR: /agents\/cline$/, CLINE_SESSION_BACKEND_MODE: 'local', CLINE_NO_AUTO_UPDATE: '1' },
      'data/settings/cline_mcp_settings.json', { mcpServers: { svc: { url: tools, headers: headers('cline') } } }],
    ['continue', 'cn', /^--config\n\S+config\.yaml\nhello\n$/, { CONTINUE_TELEMETRY_ENABLED: '0' },
      'config.yaml', { models: [{ model: 'svc/agent', apiBase: v1, requestOptions: { headers: headers('continue') }, defaultCompletionOptions: { contextLength: 8192 } }], mcpServers: [{ url: tools }] }],
    ['aider', 'aider', /^--model\nopenai\/svc\/agent\n--no-analytics\n--no-check-update\n--model-settings-file\n\S+\n--model-metadata-file\n\S+\nhello\n$/, { ...openai, OPENAI_API_BASE: v1 },
      'model-metadata.json', { 'openai/svc/agent': { max_input_tokens: 8192 } }],
    ['pi', 'pi', /^--model\nsvc\/svc\/agent\nhello\n$/, { PI_CODING_AGENT_DIR: /agents\/pi$/, PI_OFFLINE: '1' },
      'models.json', { providers: { svc: { baseUrl: v1, headers: headers('pi'), models: [{ id: 'svc/agent', contextWindow: 8192 }] } } }],
    ['hermes', 'hermes', /^hello\n$/, { HERMES_HOME: /agents\/hermes$/ }]
  ]
  for (const [agent, program, args, env, file, text] of programs) {
    await writeFile(join(own, program), PROGRAM, { mode: 0o755 })
    const out = join(home, `${agent}-said`)
    const ended = await run(['agent', 'run', agent, '--url', baseUrl, '--', 'hello'], { env: { HOME: home, PATH: `${own}:/usr/bin:/bin`, OUT: out }, cwd: home })
    t.match(ended, { code: 0, stdout: /^$/ }, agent)
    t.match(await readFile(out, 'utf8'), args, `${agent}: its arguments`)
    const lines = (await readFile(`${out}.env`, 'utf8')).split('\n').map(line => line.split(/=(.*)/s))
    t.match(Object.fromEntries(lines), env, `${agent}: its environment`)
    if (file !== undefined) t.match(JSON.parse(await read(join('.local/state/svc/agents', agent, file))), text, `${agent}: its file`)
  }
})

t.test('svc agent run says what is missing', async t => {
  t.match(await svc(['agent', 'run', 'aider']), { code: 1, stderr: /aider is not on PATH/ })
  const { files } = await (await gateway.fetch(`/api/agents/hermes/wiring?gateway=${baseUrl}&folder=/tmp/x`)).json() as { files: Record<string, string> }
  t.match(files['config.yaml'], /^ {2}personalities:\n {4}"hermes":\n {6}description: "General assistant; [^]*^display:\n {2}personality: "hermes"\n$/m)
  t.match(await svc(['agent', 'run', 'nobody']), { code: 1, stderr: /no agent 'nobody'; there are .*scribe/ })
})

t.test('svc agent connect prints or writes what an agent needs, and keeps the rest of its files', async t => {
  const shown = await svc(['agent', 'connect', 'scribe'])
  t.match(shown.stdout, `For ${home}/.scribe.toml:\n\n[servers.svc]\nurl = "${baseUrl}"\ntags = ["a", "b"]\n`)
  t.match(shown.stdout, 'models:\n  - name: agent\n    on: true\n    headers:\n      X-svc-Agent: scribe\n')
  t.match(shown.stdout, /Then start it with --server svc\n`svc agent connect scribe --write` writes it to the file/)
  await writeFile(join(home, '.scribe.toml'), 'colour = "red"\n')
  t.match(await svc(['agent', 'connect', 'scribe', '--write']), { code: 0, stdout: /\.scribe\.toml is written; backup: .*\.scribe\.yml is written\./s })
  t.equal(await read('.scribe.toml'), `colour = "red"\n\n[servers.svc]\nurl = "${baseUrl}"\ntags = ["a", "b"]\n`)
  t.equal(await read('.scribe.toml.svc-backup'), 'colour = "red"\n')
  t.match((await svc(['agent', 'connect', 'scribe', '--write'])).stdout, /toml already has it\.[^]*yml already has it/)
})

t.test('svc agent connect writes the models and the tools of the programs that are built in', async t => {
  const before = '{\n  "theme": "dark"\n}\n'
  await mkdir(join(home, '.claude'))
  await writeFile(join(home, '.claude/settings.json'), before)
  t.match(await svc(['agent', 'connect', 'cline']), { code: 0, stdout: `cline auth -p openai -k none -m svc/agent -b ${baseUrl}/v1` }, 'what only it can write is a command')
  for (const name of ['claude-code', 'codex', 'opencode', 'qwen-code', 'continue', 'aider', 'pi', 'hermes']) {
    const { code, stderr } = await svc(['agent', 'connect', name, '--write'])
    t.strictSame({ code, stderr }, { code: 0, stderr: '' }, name)
  }
  t.match(JSON.parse(await read('.claude/settings.json')), { theme: 'dark', env: { ANTHROPIC_BASE_URL: baseUrl, ANTHROPIC_MODEL: 'svc/agent' } })
  t.equal(await read('.claude/settings.json.svc-backup'), before, 'what there was is kept, and not a step in between')
  t.match(await read('.codex/config.toml'), /\[model_providers\.svc\]\n[^]*\[mcp_servers\.svc\]\n/)
  t.match(JSON.parse(await read('.config/opencode/opencode.json')), {
    provider: { svc: { models: { 'svc/agent': { limit: { context: 8192 } } } } }, mcp: { svc: { url: `${baseUrl}/mcp/admin` } }
  })
  t.match(JSON.parse(await read('.qwen/settings.json')), { security: { auth: { selectedType: 'openai' } }, mcpServers: { svc: {} } })
  t.match(await read('.continue/config.yaml'), /^name: svc\nversion: "1\.0\.0"\nschema: v1\nmodels:\n {2}- name: svc\/agent\n[^]*^mcpServers:\n/m)
  const own = join(home, 'has-continue')
  await mkdir(join(own, '.continue'), { recursive: true })
  await writeFile(join(own, '.continue/config.yaml'), 'name: mine\nversion: 0.0.1\nschema: v1\n')
  t.match(await svc(['agent', 'connect', 'continue', '--write'], { HOME: own }), { code: 0 })
  t.match(await readFile(join(own, '.continue/config.yaml'), 'utf8'), /^name: mine\nversion: 0\.0\.1\nschema: v1\nmodels:\n[^]*^mcpServers:\n/m, 'what a file begins with is the user\'s')
  t.match(await read('.aider.conf.yml'), /^model: openai\/svc\/agent$/m)
  t.match(JSON.parse(await read('.pi/agent/models.json')), { providers: { svc: { models: [{ id: 'svc/agent' }] } } })
  t.match(await read('.hermes/config.yaml'), /^model:\n {2}provider: custom\n[^]*^mcp_servers:/m)
})

t.test('a descriptor that could not work is refused where it is written', async t => {
  const good = { id: 'a', name: 'A', description: 'a', licence: { name: 'MIT', url: null }, program: 'a', requests: [], wiring: () => ({}) }
  const cases = [
    [{ id: 'A b' }, /its id is not kebab-case/],
    [{ program: '../a' }, /its program is not the name of a file/],
    [{ requests: [{ 'User-Agent': /a/ }] }, /header names in lower case/],
    [{ install: { npm: { package: 'a', version: '^1.0.0', bytes: null } } }, /exact version/],
    [{ skills: '../skills' }, /not a path below its data/],
    [{ skills: 'a/../..' }, /not a path below its data/],
    [{ install: { container: { image: 'a', bytes: null, data: '/data' } } }, /container without a server/]
  ] as const
  for (const [wrong, says] of cases) t.throws(() => defineAgent({ ...good, ...wrong }), says)
  t.doesNotThrow(() => defineAgent(good))
})

t.test('an agent is introduced to the others when it is installed, and its card goes with it', async t => {
  const phases = { probe: { status: 'done', reason: null } }
  const status = {
    name: 'scribe', status: 'installed', form: 'npm', wanted_version: '1.0.0', version: '1.0.0', problem: null, phases, data_dir: '/data', unit_active: null
  }
  const card = (id: string, source: string, tags = ['agent-identity']): object => ({ id, text: 'I am', timestamp: '', source, tags })
  const items = [card('agent-identity-scribe', 'anonymous'), card('by-itself', 'scribe'), card('of-others', 'pi'), card('no-card', 'scribe', [])]
  const fake = await fakeApi({
    'POST /api/agents/install': status,
    'POST /api/memory/add': { id: 'agent-identity-scribe', timestamp: '' },
    'GET /api/memory/list': { items, next_cursor: null },
    'POST /api/memory/delete': { deleted: 2 },
    'DELETE /api/agents/scribe': { name: 'scribe', status: 'uninstalled' }
  })
  t.teardown(() => fake.close())
  const ask = (...words: string[]): Promise<Finished> => run(['agent', ...words, '--url', fake.url], { env: { HOME: home }, cwd: home })
  t.match(await ask('install', 'scribe'), { code: 0, stderr: /^$/ })
  t.match(fake.seen.find(({ line }) => line.endsWith('/add'))?.body, {
    text: /^scribe 1\.0\.0 is an agent/, dataset: 'agents', tags: ['agent-identity'], document_id: 'agent-identity-scribe'
  })
  t.match(await ask('uninstall', 'scribe', '--keep-memory'), { code: 0, stdout: 'scribe is gone.\n' })
  t.notOk(fake.seen.some(({ line }) => line.includes('/list')), 'which stays where the memory is to be kept')
  t.match(await ask('uninstall', 'scribe'), { code: 0, stdout: 'scribe is gone.\n', stderr: /^$/ })
  t.strictSame(fake.seen.find(({ line }) => line.endsWith('/delete'))?.body, { ids: ['agent-identity-scribe', 'by-itself'], dataset: 'agents' })

  const broken = await fakeApi({
    'GET /api/memory/list': (_, response) => refuse(response, 502, 'memory.engine_failed', 'the engine is down'),
    'DELETE /api/agents/scribe': { name: 'scribe', status: 'uninstalled' }
  })
  t.teardown(() => broken.close())
  t.match(await run(['agent', 'uninstall', 'scribe', '--url', broken.url], { env: { HOME: home }, cwd: home }), {
    code: 0, stdout: 'scribe is gone.\n', stderr: /The announcement of scribe to the other agents could not be removed: the engine is down/
  })
})
