import { spawn } from 'node:child_process'
import { copyFileSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { WebSocketServer } from 'ws'
import { chatStream, FakeClock } from '../../../kernel/testing/index.js'
import activityRoutes from '../../../plugins/api/activity/index.js'
import memoryStats from '../../../plugins/api/agent-memory/index.js'
import memoryRoutes from '../../../plugins/api/memory/index.js'
import budgetRoutes from '../../../plugins/api/agent-budgets/index.js'
import personaRoutes from '../../../plugins/api/agent-personas/index.js'
import eventRoutes from '../../../plugins/api/events/index.js'
import serviceRoutes from '../../../plugins/api/services/index.js'
import toolRoutes from '../../../plugins/api/tools/index.js'
import agents from '../../../plugins/services/agents/index.js'
import budgets from '../../../plugins/services/agent-budgets/index.js'
import personas from '../../../plugins/services/agent-personas/index.js'
import memory from '../../../plugins/services/memory/index.js'
import memoryEngine from '../../../plugins/services/memory-engine/index.js'
import { Ledger } from '../../../plugins/services/agent-budgets/ledger.js'
import { fakeUpstream, refusal, upstreamTable } from '../../wire/fake-upstream.js'
import { readUntil, wireGateway, type WireGateway, type WireOptions } from '../../wire/wire-gateway.js'
import { run } from '../../cli/support.js'
import type { Answer } from './support.js'

interface Rig extends WireGateway {
  ask (method: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<Answer>
}

async function rig (t: Test, options: WireOptions = {}): Promise<Rig> {
  const gateway = await wireGateway(t, {
    plugins: [agents, serviceRoutes, personas, personaRoutes, budgets, budgetRoutes, activityRoutes, eventRoutes, toolRoutes],
    pluginConfig: { 'api-services': { systemctl: '/nonexistent' } },
    ...options
  })
  return Object.assign(gateway, {
    ask: async (method: string, path: string, body?: unknown, headers: Readonly<Record<string, string>> = {}) => {
      const response = await gateway.fetch(path, {
        method,
        headers: { ...body === undefined ? {} : { 'content-type': 'application/json' }, ...headers },
        ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) })
      })
      const text = await response.text()
      return { status: response.status, headers: response.headers, text, json: text === '' ? null : JSON.parse(text) as unknown }
    }
  })
}

const COMMENTED = '# mine\n[active]\nhermes = "reviewer"\n\n[agents.hermes.reviewer]\n# what it is for\nsummary = "Reviews"\n'

t.test('personas: built-in ones and those of the file, changed and chosen by routes, with comments kept', async t => {
  const gateway = await rig(t, { files: { 'etc/svc/personas.toml': COMMENTED, 'etc/svc/agents/robo.toml': '[agent]\nname = "robo"\n' } })
  const { ask } = gateway
  const file = (): string => readFileSync(join(gateway.home, 'etc/svc/personas.toml'), 'utf8')
  const path = '/api/agents/hermes/personas'
  t.match((await ask('GET', path)).json, {
    agent_id: 'hermes',
    active: 'reviewer',
    personas: [{ id: 'hermes', active: false }, { id: 'coder' }, { id: 'svc-brain' }, { id: 'reviewer', display_name: 'reviewer', summary: 'Reviews', active: true }]
  })
  t.match((await ask('GET', '/api/agents/robo/personas')).json, { active: 'robo', personas: { length: 3 } }, 'an agent that has a file')
  t.match((await ask('GET', `${path}/coder`)).json, {
    id: 'coder', active: false, memory_namespace: 'private:hermes-coder', tools_allowed: ['*'], preferred_upstream: 'svc', preferred_model: /^$/,
    approval: { default_policy: 'ask', auto_approve: /files\.read/, require_approval: ['files.write.*', 'shell.write.*', 'admin.*', 'svc_admin.write.*', 'kanban.write.*'] },
    raw_toml: /^\[agents\.hermes\.coder\]\n/
  })
  for (const [at, code] of [
    ['/api/agents/nobody/personas', 'agent.unknown'], [`${path}/gone`, 'persona.not_found'], ['/api/agents/__proto__/personas', 'agent.unknown']
  ] as const) {
    t.match(await ask('GET', at), { status: 404, json: { error: { code } } }, at)
  }
  const empty = await rig(t, { plugins: [personas, personaRoutes] })
  t.match((await empty.ask('GET', path)).json, { error: { code: 'agent.unknown', message: /there is no agent 'hermes'; there are none$/ } })

  const changed = await ask('PUT', `${path}/coder`, { tone: 'concise', system_prompt: 'Be "exact".\nAlways.', approval: { default_policy: 'never' } })
  t.match(changed, { status: 200, json: { tone: 'concise', summary: /^Reads code/, approval: { default_policy: 'never', require_approval: { length: 5 } } } })
  t.match(await ask('PUT', `${path}/reviewer`, { summary: 'Reviews changes' }), { status: 200, json: { summary: 'Reviews changes' } })
  const text = file()
  t.match(text, /^# mine\n[^]*# what it is for\nsummary = "Reviews changes"/)
  const wrong: ReadonlyArray<readonly [unknown, string]> = [
    [{ tone: 'rude' }, 'tone'], [{ approval: { default_policy: 'always' } }, 'approval.default_policy'], [{ memory_namespace: 'theirs' }, 'memory_namespace'],
    [{ tools_allowed: ['rm -rf'] }, 'tools_allowed.0'], [{ display_name: 'two\nlines' }, 'display_name'], [{ daily_usd: 3 }, 'daily_usd'], [{ system_prompt: 'x'.repeat(65_537) }, 'system_prompt']
  ]
  for (const [body, param] of wrong) t.match(await ask('PUT', `${path}/coder`, body), { status: 400, json: { error: { code: 'persona.invalid', param } } }, param)
  for (const body of ['{"tone":', '[]', 'null']) {
    t.match(await ask('PUT', `${path}/coder`, body), { status: 400, json: { error: { code: 'persona.malformed' } } }, body)
  }
  t.match(await ask('PUT', `${path}/Loud`, {}), { status: 400, json: { error: { code: 'persona.invalid', param: 'pid' } } })
  t.equal(file(), text, 'what is refused writes nothing')

  t.match(await ask('POST', `${path}/coder/activate`, {}), { status: 200, json: { agent_id: 'hermes', active: 'coder', previous: 'reviewer', reloaded: false, reload_error: null } })
  t.match(await ask('POST', `${path}/gone/activate`, {}), { status: 404, json: { error: { code: 'persona.not_found' } } })
  t.equal((await ask('DELETE', `${path}/coder`)).status, 204)
  t.match((await ask('GET', `${path}/coder`)).json, { active: true, tone: 'neutral' }, 'a built-in one is what it was, and stays active')
  t.match(await ask('DELETE', `${path}/coder`), { status: 409, json: { error: { code: 'persona.seed_stays' } } })
  await ask('POST', `${path}/reviewer/activate`, {})
  t.match(await ask('DELETE', `${path}/reviewer`), { status: 409, json: { error: { code: 'persona.active_stays' } } })
  t.match((await ask('GET', '/api/activity?category=agent')).json.records[0], { action: 'agent.persona_remove', target: 'hermes/reviewer', outcome: 'error' })
  t.match((await ask('GET', '/api/agents/persona-enums')).json, { tones: ['neutral', 'concise', 'friendly', 'formal', 'playful'], tools: Array })
  const etc = join(gateway.home, 'etc/svc')
  renameSync(etc, `${etc}.away`)
  writeFileSync(etc, '')
  const unwritten = await ask('PUT', `${path}/coder`, { tone: 'formal' })
  t.match(unwritten, { status: 500, json: { error: { code: 'persona.write_failed', message: /cannot be written: / } } })
})

t.test('the calls of tools by an agent, and of no other, with their arguments', async t => {
  const { ask } = await rig(t)
  t.match((await ask('GET', '/api/agents/pi/activity')).json, { agent: 'pi', events: { length: 0 }, count: 0, hint: /X-svc-Agent/ })
  for (const [limit, agent] of [[1, 'pi'], [2, 'hermes'], [3, 'pi']] as const) await ask('POST', '/api/tools/activity_list', { limit }, { 'x-svc-agent': agent })
  await ask('POST', '/api/tools/activity_list', { limit: 'many' }, { 'x-svc-agent': 'pi' })
  const { json } = await ask('GET', '/api/agents/pi/activity?limit=2')
  t.match(json, { agent: 'pi', count: 2, events: [
    { tool: 'admin/activity_list', args: { limit: 'many' }, gated: false, outcome: 'error', client_id: 'pi', timestamp: /Z$/ }, { args: { limit: 3 }, outcome: 'ok' }
  ] })
  t.notOk('hint' in json)
  t.equal((await ask('GET', '/api/agents/nobody/activity')).status, 404)
})

t.test('an agent is told what it keeps for itself, and why nothing is known while the memory is off', async t => {
  const plugins = [agents, serviceRoutes, personas, memory, memoryEngine, memoryRoutes, memoryStats]
  const { ask } = await rig(t, { plugins, svc: '[memory]\nenabled = true\n' })
  const path = '/api/agents/hermes/memory/stats'
  const empty = { agent_id: 'hermes', namespace: 'private:hermes', writes: 0, reads: 0, last_write: null, available: true }
  t.strictSame((await ask('GET', path)).json, empty)
  const own = { 'x-svc-agent': 'hermes', 'x-svc-private': '1' }
  for (const [text, headers] of [['Ada likes tea.', own], ['Ada likes rain.', own], ['Bob likes tea.', {}], ['Cid likes tea.', { ...own, 'x-svc-agent': 'pi' }]] as const) {
    t.match(await ask('POST', '/api/memory/add', { text }, headers), { status: 200 })
  }
  for (const headers of [own, {}]) await ask('POST', '/api/memory/recall', { query: 'tea' }, headers)
  t.match((await ask('GET', path)).json, { ...empty, writes: 2, reads: 1, last_write: /^\d{4}-\d\d-\d\dT/ }, 'of its own dataset and no other')
  t.match(await ask('GET', '/api/agents/robo/memory/stats'), { status: 404, json: { error: { code: 'agent.unknown' } } })
  t.match(await ask('GET', path, undefined, { ...own, 'x-svc-agent': 'pi' }), { status: 403, json: { error: { code: 'memory.bank_private' } } }, 'nor is another agent')
  t.match((await ask('GET', path, undefined, { 'x-svc-agent': 'hermes' })).json, { writes: 2 })
  const off = await rig(t, { plugins })
  t.match(await off.ask('GET', path), { status: 200, json: { ...empty, available: false, reason: /svc memory enable/ } })
})

t.test('a running agent is told of its persona, and nothing but this machine ever is', async t => {
  const said: unknown[] = []
  let refuses = false
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 })
  server.on('connection', (socket, request) => {
    said.push(request.url)
    socket.send('not a message')
    socket.send(JSON.stringify({ method: 'event', params: { type: 'gateway.ready' } }))
    socket.on('message', data => {
      const { id, method, params } = JSON.parse(String(data)) as { id: number, method: string, params: unknown }
      said.push([method, params])
      const result = method === 'session.create' ? { session_id: '0123abcd' } : { key: 'personality', value: 'coder', history_reset: false }
      socket.send(JSON.stringify(refuses ? { id, error: { code: 4001, message: 'no such personality' } } : { id, result }))
    })
  })
  await new Promise(resolve => { server.once('listening', resolve) })
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const { ask } = await rig(t)
  const activate = (url: string, more: object = {}) => ask('POST', '/api/agents/hermes/personas/coder/activate', { reload_url: url, ...more })

  t.match((await activate(`http://localhost:${port}/api/ws?token=s3`)).json, { active: 'coder', reloaded: true, reload_error: null })
  t.strictSame(said, ['/api/ws?token=s3', ['session.create', {}], ['config.set', { session_id: '0123abcd', key: 'personality', value: 'coder' }]])
  refuses = true
  t.match((await activate(`ws://127.0.0.1:${port}/`)).json, { active: 'coder', reloaded: false, reload_error: 'the agent refused session.create: no such personality' })
  said.length = 0
  t.match((await activate(`ws://127.0.0.1:${port}/`, { reload: false })).json, { reloaded: false, reload_error: null })
  t.strictSame(said, [], 'it is told only where that is asked for')
  await ask('POST', '/api/agents/hermes/personas/hermes/activate', {})
  const elsewhere = [
    `ws://10.0.0.5:${port}/`, 'http://169.254.169.254/latest/', 'ws://localhost.example.com/', 'file:///etc/passwd', 'ws://127.0.0.1@10.0.0.5/', 'ws://[::ffff:10.0.0.5]/',
    'ws://0.0.0.0/', 'http://2130706434.example/', 'nonsense', `ws://user:pw@127.0.0.1:${port}/`, 'ws://127.0.0.1.nip.io/'
  ]
  for (const url of elsewhere) t.match(await activate(url), { status: 400, json: { error: { code: 'persona.reload_url_refused', param: 'reload_url' } } }, url)
  t.equal((await ask('GET', '/api/agents/hermes/personas')).json.active, 'hermes', 'what is refused activates nothing')
  server.close()
  for (const client of server.clients) client.terminate()
  t.match((await activate(`ws://127.0.0.1:${port}/`)).json, { active: 'coder', reloaded: false, reload_error: /ECONNREFUSED/ }, 'the persona is active although nothing listens')

  const wide = await rig(t, { files: { 'etc/svc/svc.toml': '[plugins.config.agent-personas]\nreload_hosts = ["10.255.255.1"]\n' } })
  t.match((await wide.ask('POST', '/api/agents/hermes/personas/coder/activate', { reload_url: 'ws://10.255.255.1:1/', reload: false })).status, 200)
})

const BUDGET = '/api/agents/hermes/personas/hermes/budget'
const DAY_MS = 24 * 3600 * 1000
const START = Date.UTC(2026, 10, 29, 12)
/** A tenth of a cent for each token of an answer, nothing for those of the request. */
const PRICES = '# of November\n[prices."up/gpt-9"]\noutput_usd_per_mtok = 1000\n'

async function spending (t: Test, more: Readonly<Record<string, unknown>> = {}, files: Readonly<Record<string, string>> = {}) {
  const up = await fakeUpstream(t, ['gpt-9', 'gpt-8'])
  const clock = new FakeClock(START)
  const gateway = await rig(t, { clock, files: { 'etc/svc/upstreams.toml': upstreamTable('up', up.url, more), 'etc/svc/prices.toml': PRICES, ...files } })
  const answer = (tokens: number) => ({
    headers: { 'content-type': 'application/json' }, chunks: [JSON.stringify({ choices: [], usage: { prompt_tokens: 9, completion_tokens: tokens } })]
  })
  const chat = (body: object, agent: string | null = 'hermes') =>
    gateway.ask('POST', '/v1/chat/completions', { model: 'gpt-9', messages: [], max_tokens: 100, ...body }, agent === null ? {} : { 'x-svc-agent': agent })
  const today = async (): Promise<number> => (await gateway.ask('GET', BUDGET)).json.spend.today_usd as number
  const settled = (usd: number) => untilAsync(async () => await today() === usd, `${usd} are spent`)
  return { ask: gateway.ask, gateway, up, clock, answer, chat, today, settled }
}

async function untilAsync (holds: () => Promise<boolean>, what: string): Promise<void> {
  for (let i = 0; i < 2000; i++) if (await holds()) return
  throw new Error(`it did not come about: ${what}`)
}

t.test('what an agent asks an upstream for is held at its estimate, charged by its usage, and refused at the cap', async t => {
  const { ask, chat, up, answer, settled, today, clock, gateway } = await spending(t)
  t.match((await ask('GET', BUDGET)).json, { budget: null, spend: { today_usd: 0, mtd_usd: 0, lifetime_usd: 0 }, remaining: {} })
  up.play(answer(7))
  t.equal((await chat({})).status, 200)
  t.equal(await today(), 0, 'without a budget nothing is counted')
  t.match(await ask('PUT', BUDGET, { daily_usd: 0.12, monthly_usd: 0.15 }), { status: 200, json: {
    budget: { daily_usd: 0.12, monthly_usd: 0.15, lifetime_usd: null, per_call_max_usd: null, hard_cap: true },
    remaining: { daily_usd: 0.12, monthly_usd: 0.15 }
  } })
  t.equal((await chat({}, 'HERMES')).status, 200, 'a name is the same in either case')
  await settled(0.007)
  t.match((await ask('GET', `${BUDGET}/ledger`)).json.rows, [
    { kind: 'settle', settles: 1, cost_usd: -0.093, input_tokens: 9, output_tokens: 7 },
    { seq: 1, kind: 'reserve', cost_usd: 0.1, surface: 'chat', upstream: 'up', model: 'gpt-9', persona_id: 'hermes', request_id: String, ts: '2026-11-29T12:00:00.000Z' }
  ])
  for (const agent of [null, 'robo', 'not a name']) t.equal((await chat({}, agent)).status, 200)
  t.equal((await chat({ model: 'agent' })).status, 200)
  up.play(refusal(500))
  t.equal((await chat({})).status, 500)
  await settled(0.007)
  t.pass('other agents, slots and failures cost nothing')

  await ask('PUT', '/api/agents/codex/personas/codex/budget', { daily_usd: 0 })
  const asked = { model: 'gpt-9', messages: [] }
  t.match((await ask('POST', '/v1/chat/completions', asked, { 'user-agent': 'codex_exec/0.169' })).json, { error: { details: { agent: 'codex' } } },
    'one that gives no name is known by its headers')
  t.match(await ask('POST', '/v1/chat/completions', asked, { 'user-agent': 'codex_exec/0.169', 'x-svc-agent': 'robo' }), { status: 500 }, 'the name counts first')

  up.play({ headers: { 'content-type': 'text/event-stream' }, chunks: chatStream(['a', 'b', 'c', 'd']), hangAfter: 3 })
  const leaving = await gateway.fetch('/v1/chat/completions', {
    method: 'POST', body: JSON.stringify({ model: 'gpt-9', messages: [], stream: true, max_tokens: 100 }), headers: { 'x-svc-agent': 'hermes', 'content-type': 'application/json' }
  })
  await readUntil(leaving, text => text.includes('"b"'))
  await settled(0.009)
  t.pass('a stream that its reader left costs what came')

  const sent = up.calls.length
  up.play(answer(100))
  const refused = await chat({ max_tokens: 112 })
  t.match([refused.status, refused.headers.get('x-should-retry'), refused.headers.get('retry-after'), refused.json], [429, 'false', null, { error: {
    code: 'budget.exceeded', type: 'rate_limit_error', message: /^agent 'hermes' may not spend this: the daily cap is \$0\.12; \$0\.009 of it is spent, and this request may cost \$0\.112/,
    details: { agent: 'hermes', persona: 'hermes', reason: 'daily', cap_usd: 0.12, spent_usd: 0.009, estimated_usd: 0.112, resets_at: '2026-11-30T00:00:00.000Z' }
  } }])
  t.match(await chat({ model: 'gpt-8' }), { status: 409, json: { error: { code: 'budget.price_unknown', message: /svc agent prices set up\/gpt-8/ } } })
  t.match(await chat({ max_tokens: undefined }), { status: 429 }, 'an answer without a limit is taken for a long one')
  t.equal(up.calls.length, sent, 'nothing of it was sent')
  t.equal((await chat({ max_tokens: 111 })).status, 200, 'what fits exactly is let through')
  await settled(0.109)

  clock.setWall(START + DAY_MS)
  t.equal(await today(), 0, 'the next day is a new one')
  t.match((await chat({ max_tokens: 60 })).json, { error: { details: { reason: 'monthly', resets_at: '2026-12-01T00:00:00.000Z' } } })
  clock.setWall(START)
  t.match((await chat({ max_tokens: 60 })).json, { error: { details: { reason: 'daily', spent_usd: 0.109 } } }, 'a clock that is set back gives nothing back')
  clock.setWall(START + 3 * DAY_MS)
  t.match((await ask('GET', BUDGET)).json.spend, { today_usd: 0, mtd_usd: 0, lifetime_usd: 0.109 })
  t.match(await ask('PUT', BUDGET, { monthly_usd: null, hard_cap: false }), { json: { budget: { daily_usd: 0.12, monthly_usd: null } } })
  t.equal((await chat({ max_tokens: 5000 })).status, 200, 'a soft cap refuses nothing')
  t.equal((await chat({ max_tokens: 1e300 })).status, 200, 'nor does a limit that no ledger can hold')
  t.equal((await ask('GET', '/api/events?type=agent.budget_exceeded')).json.events.length, 4, 'each cap is told of once for its window')
  await ask('POST', '/api/agents/hermes/personas/coder/activate', {})
  t.equal((await chat({ model: 'gpt-8' })).status, 200, 'a persona has a budget of its own, or none')
  t.equal((await ask('DELETE', BUDGET)).status, 204)
  t.match((await ask('GET', BUDGET)).json, { budget: null, spend: { lifetime_usd: 0.309 } })
  t.match((await ask('GET', '/api/activity?action=agent.budget_*&kind=action')).json.records.map(({ action }: { action: string }) => action), [
    'agent.budget_remove', 'agent.budget_set', 'agent.budget_set', 'agent.budget_set'
  ])
})

t.test('requests at one moment cannot pass a cap together, and a fallback to a slot is free', async t => {
  const { ask, chat, up, answer, settled } = await spending(t, { fallback: ['agent'] })
  await ask('PUT', BUDGET, { daily_usd: 0.3 })
  up.play(answer(100))
  const answers = await Promise.all(Array.from({ length: 12 }, () => chat({})))
  t.ok(answers.every(({ status }) => status === 200))
  t.equal(up.calls.length, 3, 'those that the cap holds went out; the others were served here')
  await settled(0.3)
})

t.test('budgets and charges by routes: what they may say, and one transaction for check and charge', async t => {
  const { ask } = await rig(t)
  const wrong: ReadonlyArray<readonly [method: string, path: string, body: unknown, code: string]> = [
    ['PUT', BUDGET, { daily_usd: -1 }, 'budget.invalid'], ['PUT', BUDGET, { daily_usd: true }, 'budget.invalid'], ['PUT', BUDGET, { weekly_usd: 1 }, 'budget.invalid'],
    ['PUT', BUDGET, { hard_cap: 1 }, 'budget.invalid'], ['POST', `${BUDGET}/check`, {}, 'budget.invalid_estimate'], ['POST', `${BUDGET}/check`, { estimated_cost_usd: '1' }, 'budget.invalid_estimate'],
    ['POST', `${BUDGET}/charge`, { surface: 'search', cost_usd: 1 }, 'budget.invalid_charge'], ['PATCH', '/api/agents/prices', { prices: { 'up/x': { input_usd_per_mtok: -1 } } }, 'budget.invalid_price'],
    ['PATCH', '/api/agents/prices', { prices: { 'no upstream': {} } }, 'budget.invalid_price'],
    ['PUT', BUDGET, '{"daily_usd":', 'budget.invalid_body'], ['PUT', BUDGET, '[]', 'budget.invalid_body'],
    ['POST', `${BUDGET}/check`, 'null', 'budget.invalid_body'], ['POST', `${BUDGET}/charge`, '"1"', 'budget.invalid_body']
  ]
  for (const [method, path, body, code] of wrong) {
    t.match(await ask(method, path, body), { status: 400, json: { error: { code } } }, JSON.stringify(body))
  }
  t.match(await ask('GET', '/api/agents/hermes/personas/gone/budget'), { status: 404, json: { error: { code: 'persona.not_found' } } })

  const check = async (usd: number) => (await ask('POST', `${BUDGET}/check`, { estimated_cost_usd: usd })).json as unknown
  t.same(await check(5), { allowed: true, reason: null, remaining_usd: null, hard_cap: true }, 'without a budget everything is')
  await ask('PUT', BUDGET, { daily_usd: 1, monthly_usd: 3, lifetime_usd: 0.9, per_call_max_usd: 0.5 })
  t.same(await check(0.6), { allowed: false, reason: 'per_call', remaining_usd: 0.9, hard_cap: true })
  const charge = (usd: number, more: object = {}) => ask('POST', `${BUDGET}/charge`, { surface: 'search', model: 'web', cost_usd: usd, ...more })
  t.match(await charge(0.5, { request_id: 'r1' }), { status: 200, json: { recorded: true, spend: { today_usd: 0.5 }, remaining: { daily_usd: 0.5, lifetime_usd: 0.4 }, row: { kind: 'charge', cost_usd: 0.5, request_id: 'r1' } } })
  t.match(await charge(0.5, { request_id: 'r1' }), { status: 200, json: { spend: { today_usd: 0.5 }, row: { seq: 1 } } }, 'a charge that is sent again is the same')
  t.match(await charge(0.45), { status: 429, json: { error: { code: 'budget.exceeded', details: { reason: 'lifetime', resets_at: null } } } })
  t.same(await check(0.4), { allowed: true, reason: null, remaining_usd: 0.4, hard_cap: true })
  const racing = await Promise.all(Array.from({ length: 8 }, () => charge(0.1)))
  t.equal(racing.filter(({ status }) => status === 200).length, 4, 'charges at one moment pass as many as the cap holds')
  t.match((await charge(0.3, { spent: true })).json, { spend: { lifetime_usd: 1.2 }, remaining: { lifetime_usd: 0, daily_usd: 0 } }, 'what has gone is written down')
  await ask('PUT', BUDGET, { daily_usd: 0, lifetime_usd: null })
  t.match(await charge(0.000001), { status: 429, json: { error: { details: { reason: 'daily', cap_usd: 0 } } } }, 'no dollar a day lets nothing through')
  t.equal((await charge(0)).status, 200, 'but what is free')
  const page = (await ask('GET', `${BUDGET}/ledger?limit=2`)).json
  t.match(page, { rows: [{ cost_usd: 0 }, { cost_usd: 0.3 }], next_before: Number })
  t.match((await ask('GET', `${BUDGET}/ledger?before=${page.next_before}`)).json, { rows: { length: 5 }, next_before: null })

  t.same((await ask('PATCH', '/api/agents/prices', { prices: { 'up/*': { input_usd_per_mtok: 2, output_usd_per_mtok: 8 } } })).json.prices, { 'up/*': { input_usd_per_mtok: 2, output_usd_per_mtok: 8, request_usd: 0 } })
  t.match((await ask('PATCH', '/api/agents/prices', { prices: { 'up/*': { cached_input_usd_per_mtok: 1 } } })).json.prices['up/*'], { input_usd_per_mtok: 2, cached_input_usd_per_mtok: 1 }, 'what is left out stays')
  t.same((await ask('PATCH', '/api/agents/prices', { prices: { 'up/*': null } })).json, { prices: {} })
})

t.test('a ledger whose gateway is killed at any moment has every entry that was granted, and totals that are their sum', async t => {
  const folder = t.testdir()
  const path = join(folder, 'ledger.db')
  const purse = { agent: 'pi', persona: 'pi' }
  let granted = 0
  for (let run = 0; run < 3; run++) {
    const child = spawn(process.execPath, [fileURLToPath(new URL('ledger-child.js', import.meta.url)), path], { stdio: ['ignore', 'pipe', 'inherit'] })
    let [lines, killed] = [0, false]
    for await (const chunk of child.stdout) {
      const before = lines
      lines += String(chunk).split('\n').length - 1
      granted += lines - before
      if (lines > 5 + run * 11 && !killed) {
        killed = true
        child.kill('SIGKILL')
      }
    }
    const ledger = await Ledger.open(path)
    const rows = ledger.entries(purse, 100_000)
    const reserved = rows.filter(({ kind }) => kind === 'reserve')
    t.ok(reserved.length >= granted, `${reserved.length} of ${granted} that the child was told of`)
    t.equal(rows.filter(({ kind }) => kind === 'settle').length, reserved.length, 'each is settled once, those of the killed run at their estimate')
    t.equal(ledger.totals(purse, START).lifetime, rows.reduce((sum, { nano }) => sum + nano, 0))
    granted = reserved.length
    ledger.settle(reserved[0]!.seq, 5, null)
    t.equal(ledger.entries(purse, 100_000).length, rows.length, 'a second settlement does nothing')
    ledger.close()
  }
})

t.test('a ledger that could not be read at the start is tried again with the requests it refuses, once a minute', async t => {
  const place = 'var/lib/svc/plugin-state/agent-budgets/ledger.db'
  const { chat, clock, gateway, up, answer } = await spending(t, {}, { [place]: 'no database' })
  const [broken, good] = [join(gateway.home, place), join(t.testdir(), 'ledger.db')]
  const ledger = await Ledger.open(good)
  ledger.setBudget({ agent: 'hermes', persona: 'hermes' }, { daily_usd: 0.1, monthly_usd: null, lifetime_usd: null, per_call_max_usd: null, hard_cap: true })
  ledger.close()
  const code = async (): Promise<unknown> => (await chat({})).json?.error?.code
  t.equal(await code(), 'budget.ledger_failed')
  rmSync(broken)
  await clock.advance(60_000)
  t.equal(await code(), 'budget.ledger_failed')
  t.notOk(existsSync(broken), 'one that is gone is not made anew')
  copyFileSync(good, broken)
  t.equal(await code(), 'budget.ledger_failed', 'not before the minute is over')
  await clock.advance(60_000)
  t.equal(await code(), 'budget.ledger_failed', 'the request that finds it waits for nothing')
  up.play(answer(100))
  await untilAsync(async () => await code() !== 'budget.ledger_failed', 'the ledger is read')
  t.equal(await code(), 'budget.exceeded', 'its caps hold again')
})

t.test('svc agent personas, budget and prices do what their routes do', async t => {
  const { gateway, chat, up, answer, settled } = await spending(t)
  const svc = async (...args: string[]) => await run(['agent', ...args, '--url', gateway.baseUrl])
  t.match(await svc('personas', 'list'), { code: 0, stdout: /ID .*ACTIVE[^]*\nhermes +yes[^]*\ncoder[^]*\nsvc-brain/ })
  t.match(await svc('personas', 'show', 'coder'), { code: 0, stdout: /^\[agents\.hermes\.coder\]\n[^]*default_policy = "ask"/ })
  t.match(await svc('personas', 'activate', 'coder'), { code: 0, stdout: 'coder is active; before, it was hermes.\n' })
  t.match(await svc('personas', 'activate', 'hermes', '--reload-url', 'ws://127.0.0.1:1/'), { code: 0, stdout: 'hermes is active; before, it was coder.\n', stderr: /could not be reloaded: .*ECONNREFUSED/ })
  t.match(await svc('personas', 'activate', 'coder', '--reload-url', 'ws://example.com/'), { code: 1, stderr: /example\.com is not this machine/ })
  t.match(await svc('personas', 'show', 'gone', '--agent', 'pi'), { code: 1, stderr: /agent 'pi' has no persona 'gone'/ })

  t.match(await svc('budget', 'show'), { code: 0, stdout: /^There is no budget/ })
  t.match(await svc('budget', 'set', '--daily', '0.15', '--lifetime', '1'), { code: 0, stdout: /today +0\.15 +0\.00[^]*this month +none[^]*lifetime +1\.00/ })
  up.play(answer(60))
  t.equal((await chat({})).status, 200)
  await settled(0.06)
  t.equal((await chat({})).status, 429)
  t.match(await svc('budget', 'show', '--ledger'), { code: 0, stdout: /settle +-0\.04 +chat +up\/gpt-9\n.*reserve +0\.10/ })
  t.match(await svc('budget', 'set', '--soft', '--hard'), { code: 1, stderr: /cannot be used together/ })
  t.match(await svc('budget', 'set', '--daily', 'much'), { code: 2, stderr: /number of US dollars/ })
  t.match(await svc('budget', 'set', '--daily', 'none', '--soft'), { code: 0, stdout: /today +none +0\.06/, stderr: /reported, not refused/ })
  t.match(await svc('budget', 'off', '--persona', 'hermes'), { code: 0, stdout: /no longer has a budget/ })
  t.match(JSON.parse((await svc('budget', 'show', '--json')).stdout), { budget: null, spend: { lifetime_usd: 0.06 } })

  t.match(await svc('prices', 'list'), { code: 0, stdout: /up\/gpt-9 +0 +0 +1000 +0/ })
  t.match(await svc('prices', 'set', 'lan/*', '--request', '0.5'), { code: 0, stdout: /^The price of lan\/\* is set/ })
  t.match(await svc('prices', 'set', 'lan/*'), { code: 2, stderr: /say what it costs/ })
  t.match(await svc('prices', 'rm', 'lan/*'), { code: 0, stdout: 'The price of lan/* is removed.\n' })
  t.match(await svc('prices', 'rm', 'lan/*'), { code: 1, stderr: /lan\/\* has no price/ })
})
