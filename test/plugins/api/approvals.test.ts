import t, { type Test } from 'tap'
import { z } from 'zod'
import { core, definePlugin, defineTool, type ToolCatalogue, type ToolOutcome } from '../../../kernel/contract/index.js'
import { createTestGateway, FakeClock } from '../../../kernel/testing/index.js'
import activityRoutes from '../../../plugins/api/activity/index.js'
import routes from '../../../plugins/api/approvals/index.js'
import settings from '../../../plugins/api/settings/index.js'
import status from '../../../plugins/api/status/index.js'
import approvals from '../../../plugins/services/approvals/index.js'
import { openStream, type Answer } from './support.js'

interface Ran {
  readonly args: unknown
  readonly actor: string
}

const DAY_MS = 24 * 60 * 60 * 1000
const PULL = { model_id: 'qwen3', hf_token: 'hf_abcdefghijklmnopqrst' }

interface InboxOptions {
  readonly home?: string
  readonly clock?: FakeClock
  readonly svc?: string
  readonly files?: Readonly<Record<string, string>>
  /** Whether the plugin with the tools is there. */
  readonly brings?: boolean
}

/** A gateway whose server `admin` has a gated tool that does as the test says, and one that is not gated. */
async function inbox (t: Test, { home, clock, svc = '', files = {}, brings = true }: InboxOptions = {}) {
  const ran: Ran[] = []
  let tools: ToolCatalogue | null = null
  let work: (signal: AbortSignal) => Promise<unknown> = () => Promise.resolve({ started: true })
  const plugin = definePlugin({
    name: 'test-tools',
    kind: ['mcp', 'service'],
    apiVersion: 1,
    requires: { tools: core.tools },
    register (ctx) {
      tools = ctx.services.tools
      ctx.addTool(defineTool({
        server: 'admin',
        name: 'model_pull',
        description: 'pulls',
        gated: true,
        primary: 'model_id',
        secrets: ['pass'],
        unwritten: ['letter'],
        input: z.strictObject({
          model_id: z.string(), hf_token: z.string().optional(), pass: z.string().optional(), note: z.string().optional(),
          letter: z.string().optional()
        }),
        handler: async ({ input, actor, signal }) => {
          ran.push({ args: input, actor })
          return await work(signal)
        }
      }))
      ctx.addTool(defineTool({
        server: 'admin', name: 'look', description: 'looks', input: z.strictObject({}), readOnly: true, handler: async () => ({ seen: 1 })
      }))
    }
  })
  const gateway = await createTestGateway({
    plugins: [activityRoutes, approvals, routes, settings, status, ...brings ? [plugin] : []],
    ...(home === undefined ? {} : { home }),
    ...(clock === undefined ? {} : { clock }),
    files: home === undefined ? { 'etc/svc/svc.toml': svc, ...files } : files
  })
  let open = true
  const close = async (): Promise<void> => {
    if (open) await gateway.close()
    open = false
  }
  t.teardown(close)
  const call = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> => {
    const response = await gateway.fetch(path, {
      method,
      headers: { ...body === undefined ? {} : { 'content-type': 'application/json' }, ...headers },
      ...body === undefined ? {} : { body: JSON.stringify(body) }
    })
    const text = await response.text()
    return { status: response.status, headers: response.headers, text, json: JSON.parse(text) as unknown }
  }
  return {
    ...gateway,
    close,
    ran,
    call,
    works: (next: typeof work) => { work = next },
    tools: tools as ToolCatalogue | null,
    ask: (
      args: Record<string, unknown> = PULL, agent: string | null = 'hermes', tool = 'model_pull', isPrivate = false
    ): Promise<ToolOutcome> => tools!.call('admin', tool, args, {
      agent, actor: `mcp:${agent ?? 'anonymous'}`, private: isPrivate, signal: new AbortController().signal
    }),
    list: async (query = ''): Promise<readonly Entry[]> => (await call('GET', `/api/agent/approvals${query}`)).json.approvals as Entry[],
    one: async (id: string): Promise<Entry> => (await call('GET', `/api/agent/approvals/${id}`)).json.approval as Entry,
    approve: (id: string, headers = {}) => call('POST', `/api/agent/approvals/${id}/approve`, undefined, headers),
    deny: (id: string, body?: unknown) => call('POST', `/api/agent/approvals/${id}/deny`, body)
  }
}

interface Entry {
  readonly id: string
  readonly state: string
  readonly hit_count: number
  readonly client_id: string
  readonly args: Readonly<Record<string, unknown>>
  readonly expires_at: number | null
  readonly error: { readonly code: string, readonly message: string } | null
}

function idOf (outcome: ToolOutcome): string {
  if (outcome.kind !== 'pending') throw new Error(`not pending: ${JSON.stringify(outcome)}`)
  return outcome.approvalId
}

t.test('a gated call waits, runs once when it is approved, and tells its result', async t => {
  const gateway = await inbox(t)
  const id = idOf(await gateway.ask())
  t.equal(gateway.ran.length, 0, 'nothing runs before')
  t.match(await gateway.list(), [{
    id, state: 'pending', server: 'admin', tool: 'model_pull', client_id: 'hermes', primary: 'qwen3', hit_count: 1,
    args: { model_id: 'qwen3', hf_token: '***' }, decided_at: null, result: null, error: null
  }])
  const { status, json } = await gateway.approve(id)
  t.equal(status, 200)
  t.match(json, { approval: { id, state: 'executed', decided_by: 'dashboard', result: { started: true }, error: null } })
  t.same(gateway.ran, [{ args: PULL, actor: 'mcp:hermes' }], 'with the arguments as they were given, in the name of the agent')
  t.match(await gateway.approve(id), { status: 409, json: { error: { code: 'approvals.already_resolved', message: /already executed/ } } })
  t.match(await gateway.deny(id), { status: 409 })
  t.equal(gateway.ran.length, 1)
  t.same(await gateway.list(), [])
  t.match(await gateway.list('?state=executed'), [{ id }])
  t.match(await gateway.call('GET', `/api/agent/approvals/${'0'.repeat(32)}`), { status: 404, json: { error: { code: 'approvals.not_found' } } })
  const rows = (await gateway.call('GET', '/api/activity?kind=action')).json.records as ReadonlyArray<Record<string, unknown>>
  const row = rows.find(({ action, outcome }) => action === 'approval.approve' && outcome === 'ok')
  t.match(row, { category: 'approval', target: id, actor: 'dashboard', outcome: 'ok', after: { tool: 'model_pull', client_id: 'hermes', state: 'executed' } })
  t.ok(rows.some(({ actor, message, after }) => actor === 'mcp:hermes' && JSON.stringify([message, after]).includes('dashboard')), 'the call\'s own row names who approved it')
  t.notMatch(JSON.stringify(rows), /hf_abc/)
})

t.test('a call that is asked for again joins the one that waits', async t => {
  const gateway = await inbox(t)
  const id = idOf(await gateway.ask())
  t.equal(idOf(await gateway.ask({ model_id: 'qwen3', note: 'other' }, 'pi')), id, 'by what it is about, whoever asks')
  const other = idOf(await gateway.ask({ model_id: 'llama' }))
  t.not(other, id)
  t.match(await gateway.list(), [{ id: other, hit_count: 1 }, { id, hit_count: 2, client_id: 'hermes', args: { hf_token: '***' } }])
  await gateway.approve(id)
  t.same(gateway.ran.map(({ args }) => args), [PULL], 'what was shown is what runs')
  t.not(idOf(await gateway.ask()), id, 'afterwards it is asked for anew')

  const ofPi = idOf(await gateway.ask(PULL, 'pi', 'model_pull', true))
  t.not(idOf(await gateway.ask(PULL, 'hermes', 'model_pull', true)), ofPi, 'in private mode what is called is the agent\'s own')
  t.equal(idOf(await gateway.ask(PULL, 'pi', 'model_pull', true)), ofPi)
})

t.test('of many decisions at once one counts', async t => {
  const gateway = await inbox(t)
  let finish = (): void => {}
  gateway.works(() => new Promise(resolve => { finish = () => resolve({ done: true }) }))
  for (const [i, decisions] of [['approve', 'approve', 'approve'], ['approve', 'deny', 'approve'], ['deny', 'approve', 'deny']].entries()) {
    const before = gateway.ran.length
    const id = idOf(await gateway.ask({ model_id: `m${i}` }))
    const answers = Promise.all(decisions.map(decision => decision === 'approve' ? gateway.approve(id) : gateway.deny(id)))
    while ((await gateway.one(id)).state === 'pending') await new Promise(setImmediate)
    finish()
    const done = await answers
    t.same(done.map(({ status }) => status).sort(), [200, 409, 409], decisions.join(' '))
    const { state } = await gateway.one(id)
    t.equal(gateway.ran.length - before, state === 'executed' ? 1 : 0, state)
    t.ok(['executed', 'denied'].includes(state), state)
  }
})

t.test('a call goes on when the client that approved it leaves', async t => {
  const gateway = await inbox(t)
  let finish = (): void => {}
  let begun = (): void => {}
  const isBegun = new Promise<void>(resolve => { begun = resolve })
  gateway.works(() => new Promise(resolve => {
    begun()
    finish = () => resolve({ done: true })
  }))
  const id = idOf(await gateway.ask())
  const leaving = new AbortController()
  const events = await openStream(t, gateway, '/api/agent/approvals/events')
  const left = gateway.fetch(`/api/agent/approvals/${id}/approve`, { method: 'POST', signal: leaving.signal }).catch(() => 'left')
  await isBegun
  leaving.abort()
  t.equal(await left, 'left')
  t.match(await gateway.one(id), { state: 'approved' })
  finish()
  await events.until(({ data }) => data.kind === 'executed')
  t.match(await gateway.one(id), { state: 'executed', result: { done: true } })
})

t.test('a denied call never runs, and its agent is told why', async t => {
  const gateway = await inbox(t)
  const id = idOf(await gateway.ask({ model_id: 'a', pass: 'pa55' }))
  t.match(await gateway.deny(id, { reason: 'the disk is full' }), { status: 200, json: { approval: { state: 'denied', reason: 'the disk is full' } } })
  t.match(await gateway.approve(id), { status: 409 })
  t.match(await gateway.ask({ approval_id: id }, 'hermes', 'approval_status'), {
    kind: 'done', value: { approval: { id, state: 'denied', reason: 'the disk is full', args: { model_id: 'a', pass: '***' } } }
  })
  t.equal(gateway.ran.length, 0)
  const stored = gateway.gateway.kernel().approvals.get(id)
  t.same(stored?.args, { model_id: 'a', pass: '***' }, 'secrets are kept no longer than they are needed')
  t.match(await gateway.call('POST', `/api/agent/approvals/${id}/deny`, { why: 'x' }), { status: 400, json: { error: { code: 'validation.unknown_keys' } } })
  const { json } = await gateway.call('GET', '/api/activity?action=approval.deny')
  t.match(json.records, [{ target: id, outcome: 'ok', actor: 'dashboard', after: { reason: 'the disk is full' } }])
})

t.test('an unwritten argument is shown to an operator who decides, to no agent, and to nobody once it is decided', async t => {
  const clock = new FakeClock()
  const gateway = await inbox(t, { home: t.testdir(), clock })
  const letter = 'The treasure is in Zanzibar.'
  const read = async (id: string, headers: Record<string, string> = {}): Promise<Record<string, string>> => {
    const path = `/api/agent/approvals/${id}`
    const page = await gateway.fetch(`${path}/page`, { headers })
    return {
      list: (await gateway.call('GET', '/api/agent/approvals?state=all', undefined, headers)).text,
      entry: (await gateway.call('GET', path, undefined, headers)).text,
      page: await page.text()
    }
  }
  const tool = async (id: string): Promise<string> => JSON.stringify(await gateway.ask({ approval_id: id }, 'mallory', 'approval_status'))
  const snapshot = async (headers: Record<string, string> = {}): Promise<string> =>
    JSON.stringify(await (await openStream(t, gateway, '/api/agent/approvals/events', headers)).next())
  const isHidden = (texts: Readonly<Record<string, string>>, id: string): void => {
    for (const [where, text] of Object.entries(texts)) {
      t.match(text, where === 'page' ? 'model_pull' : id, where)
      t.notMatch(text, /Zanzibar/, where)
    }
  }
  const ends: Readonly<Record<string, (id: string) => Promise<unknown>>> = {
    executed: id => gateway.approve(id), denied: id => gateway.deny(id), expired: () => clock.advance(DAY_MS)
  }
  for (const [state, end] of Object.entries(ends)) {
    const id = idOf(await gateway.ask({ model_id: state, letter }))
    for (const [where, text] of Object.entries({ ...await read(id), snapshot: await snapshot() })) t.match(text, /Zanzibar/, where)
    const agent = { 'x-svc-agent': 'mallory' }
    isHidden({ ...await read(id, agent), snapshot: await snapshot(agent), tool: await tool(id) }, id)
    let running: Record<string, string> = {}
    gateway.works(async () => {
      running = await read(id)
      return { letter: `${letter} `, started: true }
    })
    await end(id)
    isHidden({ ...await read(id), tool: await tool(id) }, id)
    t.match(gateway.gateway.kernel().approvals.get(id), { state, args: { model_id: state, letter: '***' } }, 'it is not kept either')
    t.equal(Object.keys(running).length, state === 'executed' ? 3 : 0)
    isHidden(running, id)
  }
  t.same(gateway.ran.map(({ args }) => args), [{ model_id: 'executed', letter }], 'what ran is what was asked for')
  const { text } = await gateway.call('GET', '/api/activity')
  for (const action of ['approval.approve', 'approval.deny', 'approval.expired', 'mcp.tool.invoked']) t.match(text, action)
  t.notMatch(text, /Zanzibar/)
})

t.test('an agent cannot approve, by its own name or by another', async t => {
  const gateway = await inbox(t)
  const id = idOf(await gateway.ask())
  for (const agent of ['hermes', 'pi', 'HERMES', ' hermes ', 'no such/agent', 'a'.repeat(300)]) {
    t.match(await gateway.approve(id, { 'x-svc-agent': agent }), { status: 403, json: { error: { code: 'approvals.operator_only' } } }, agent)
  }
  t.equal(gateway.ran.length, 0)
  t.match(await gateway.approve(id, { 'x-svc-client': 'cli' }), { status: 200, json: { approval: { decided_by: 'cli' } } })
})

t.test('a call that fails is told as failed, and so is one whose tool has gone', async t => {
  const gateway = await inbox(t)
  gateway.works(() => Promise.reject(new Error('boom with hf_abcdefghijklmnopqrst')))
  const id = idOf(await gateway.ask())
  t.match(await gateway.approve(id), { status: 200, json: { approval: { state: 'failed', error: { code: 'system.internal' }, result: null } } })
  const kept = await inbox(t, { home: t.testdir() })
  const waiting = idOf(await kept.ask({ model_id: 'later' }))
  await kept.close()
  const again = await inbox(t, { home: kept.home, brings: false })
  t.match(await again.list(), [{ id: waiting, state: 'pending' }])
  t.match(await again.approve(waiting), { json: { approval: { state: 'failed', error: { code: 'mcp.unknown_tool' } } } })
})

t.test('what waits outlives the gateway; what ran when it stopped is not run again', async t => {
  const first = await inbox(t, { home: t.testdir() })
  const id = idOf(await first.ask())
  const running = idOf(await first.ask({ model_id: 'slow' }))
  let begun = (): void => {}
  const isBegun = new Promise<void>(resolve => { begun = resolve })
  first.works(signal => new Promise((_resolve, reject) => {
    begun()
    signal.addEventListener('abort', () => reject(new Error('stopped')), { once: true })
  }))
  const cut = first.approve(running).catch(() => 'cut')
  await isBegun
  await first.close()
  await cut
  const second = await inbox(t, { home: first.home })
  t.match(await second.list(), [{ id, state: 'pending', args: { hf_token: '***' } }])
  t.match(await second.one(running), { state: 'failed', error: { code: 'mcp.cancelled', message: /what it started may continue/ } })
  t.match(await second.approve(running), { status: 409 })
  t.match(await second.approve(id), { json: { approval: { state: 'executed' } } })
  t.same(second.ran.map(({ args }) => args), [PULL])
})

t.test('an entry expires after its time, and setting the wall clock changes nothing', async t => {
  const clock = new FakeClock()
  const gateway = await inbox(t, { home: t.testdir(), clock })
  const events = await openStream(t, gateway, '/api/agent/approvals/events')
  const id = idOf(await gateway.ask())
  t.equal((await gateway.one(id)).expires_at, (clock.now() + DAY_MS) / 1000)
  clock.setWall(clock.now() + 400 * DAY_MS)
  t.equal((await gateway.one(id)).state, 'pending', 'forward')
  clock.setWall(clock.now() - 800 * DAY_MS)
  await clock.advance(DAY_MS - 1)
  t.equal((await gateway.one(id)).state, 'pending', 'back')
  await clock.advance(1)
  await events.until(({ data }) => data.kind === 'expired')
  t.match(await gateway.one(id), { state: 'expired', decided_by: null, expires_at: null })
  t.match(await gateway.approve(id), { status: 409, json: { error: { message: /already expired/ } } })

  const soon = idOf(await gateway.ask())
  await clock.advance(DAY_MS / 2)
  await gateway.close()
  clock.setWall(clock.now() + DAY_MS / 2 - 60_000)
  const second = await inbox(t, { home: gateway.home, clock })
  t.equal((await second.one(soon)).state, 'pending', 'what it waited before the start counts')
  await clock.advance(60_000)
  t.equal((await second.one(soon)).state, 'expired')

  const future = idOf(await second.ask())
  await second.close()
  clock.setWall(clock.now() - 100 * DAY_MS)
  const third = await inbox(t, { home: gateway.home, clock })
  t.equal((await third.one(future)).expires_at, (clock.now() + DAY_MS) / 1000, 'one from the future begins anew')
  await third.close()
  clock.setWall(clock.now() + 200 * DAY_MS)
  const fourth = await inbox(t, { home: gateway.home, clock })
  t.equal((await fourth.one(future)).state, 'expired', 'one that is long over at the start')
  t.equal(gateway.ran.length + second.ran.length + third.ran.length + fourth.ran.length, 0)
})

t.test('the stream begins with what waits and tells what happens', async t => {
  const gateway = await inbox(t)
  const before = idOf(await gateway.ask({ model_id: 'a', note: 'n'.repeat(5000) }))
  const events = await openStream(t, gateway, '/api/agent/approvals/events')
  t.match(await events.next(), { data: { kind: 'snapshot', entry: { id: before, state: 'pending', args: { note: '… 5002 characters' }, is_cut: true } } })
  t.match(await gateway.one(before), { args: { note: /^n{5000}$/ }, is_cut: false })
  const id = idOf(await gateway.ask())
  await gateway.ask()
  await gateway.approve(id)
  await gateway.deny(before)
  const kinds: unknown[] = []
  while (kinds.length < 5) kinds.push(((await events.next()) as { data: { kind: string } }).data.kind)
  t.same(kinds, ['enqueued', 'repeated', 'approved', 'executed', 'denied'])
})

t.test('the inbox is bounded, in all and for one agent, and so are arguments', async t => {
  const gateway = await inbox(t)
  t.match(await gateway.ask({ model_id: 'big', note: 'n'.repeat(70_000) }), { kind: 'failed', error: { code: 'approvals.too_large' } })
  for (let i = 0; i < 50; i++) idOf(await gateway.ask({ model_id: `m${i}` }))
  t.match(await gateway.ask({ model_id: 'm50' }), { kind: 'failed', error: { code: 'approvals.inbox_full', message: /of this agent/ } })
  t.equal(idOf(await gateway.ask({ model_id: 'm7' })).length, 32, 'one that waits is joined all the same')
  for (let i = 50; i < 200; i++) idOf(await gateway.ask({ model_id: `m${i}` }, `agent-${Math.floor(i / 50)}`))
  t.match(await gateway.ask({ model_id: 'm200' }, 'pi'), { kind: 'failed', error: { code: 'approvals.inbox_full', message: /^200 calls/ } })
  for (const { id } of (await gateway.list()).slice(0, 60)) await gateway.deny(id)
  const pages: string[] = []
  let before: number | null = null
  do {
    const { json } = await gateway.call('GET', `/api/agent/approvals?state=all&limit=90${before === null ? '' : `&before=${before}`}`)
    pages.push(...(json.approvals as Entry[]).map(({ id }) => id))
    before = json.next_before as number | null
  } while (before !== null)
  t.equal(new Set(pages).size, 200)
  t.equal((await gateway.list('?state=denied')).length, 60)
  t.match(await gateway.call('GET', '/api/agent/approvals?state=maybe'), { status: 400, json: { error: { code: 'validation.invalid' } } })
})

t.test('the policy counts at once: what runs by itself, and what nobody may call', async t => {
  const gateway = await inbox(t, { files: {
    'etc/svc/agents/careful.toml': '[agent]\nname = "careful"\n[mcp.servers.admin]\nbuiltin = true\ntools = { gated = ["model_pull", "look"], allow = ["lok"] }\n'
  } })
  const policy = async (approvals: object): Promise<void> => { t.equal((await gateway.call('PATCH', '/api/settings', { approvals })).status, 200) }
  await policy({ auto: ['model_pull', 'look', 'pull'], never: [] })
  t.match(await gateway.ask(), { kind: 'done', value: { started: true } })
  idOf(await gateway.ask(PULL, 'careful'))
  idOf(await gateway.ask({}, 'careful', 'look'))
  t.match(await gateway.ask({}, 'pi', 'look'), { kind: 'done' })
  const { json } = await gateway.call('GET', '/api/status')
  t.match((json.diagnostics as ReadonlyArray<{ path: string, message: string, severity: string }>).map(({ path, message, severity }) => `${severity} ${path} ${message}`).sort(), [
    /^warning approvals\.auto\.1 has no effect: look is not gated/,
    /^warning approvals\.auto\.2 names pull, which no tool has/,
    /^warning mcp\.servers\.admin\.tools\.allow\.0 names lok, which admin does not have; did you mean look\?/
  ])
  await policy({ never: ['look', 'admin/model_pull'] })
  t.match(await gateway.ask({}, 'pi', 'look'), { kind: 'failed', error: { code: 'mcp.tool_not_allowed' } })
  t.match(await gateway.ask({}, null, 'look'), { kind: 'failed', error: { code: 'mcp.tool_not_allowed' } })
  t.match(await gateway.ask(), { kind: 'failed', error: { code: 'mcp.tool_not_allowed' } })
  const offered = gateway.tools!.list('admin', { agent: 'pi' }).map(({ name }) => name)
  t.same(['approval_status', 'look', 'model_pull'].map(name => offered.includes(name)), [true, false, false])
  const [waiting] = await gateway.list()
  await policy({ never: [], auto: [], ttl_s: 30 })
  const [sooner] = await gateway.list()
  t.equal(Math.round((waiting!.expires_at! - sooner!.expires_at!) / 10), (24 * 3600 - 30) / 10, 'entries that wait already have the new time')
  t.same(gateway.tools!.list('admin', { agent: 'careful' }).map(({ name, gated }) => `${name} ${gated}`), ['look true', 'model_pull true'])
})

t.test('a gated tool of an installed server waits in the same inbox, and its answer is kept in its own words', async t => {
  const gateway = await inbox(t, { svc: '[approvals]\nauto = ["move"]\n', files: { 'etc/svc/api.env': 'FILES_KEY="s3cret-value"\n' } })
  const remove = gateway.tools!.addServer({
    id: 'files',
    title: 'Files',
    description: 'Elsewhere',
    tools: () => [{
      name: 'move', title: null, description: 'Moves', inputSchema: { type: 'object', properties: {} }, outputSchema: null, gated: true, primary: null, secrets: [], annotations: {}
    }],
    call: async (_name, { to }) => ({ content: [{ type: 'text', text: to === 'nowhere' ? 'no such place for s3cret-value' : 'moved' }], isError: to === 'nowhere' })
  })
  const move = (to: string): Promise<ToolOutcome> =>
    gateway.tools!.call('files', 'move', { to }, { agent: 'hermes', actor: 'mcp:hermes', signal: new AbortController().signal })
  const first = idOf(await move('here'))
  t.not(idOf(await move('nowhere')), first, 'without a primary argument all of them count')
  t.equal(idOf(await move('here')), first)
  const [nowhere] = await gateway.list()
  t.match(await gateway.approve(first), { json: { approval: { server: 'files', state: 'executed', result: { content: [{ text: 'moved' }] } } } })
  t.match(await gateway.approve(nowhere!.id), { json: { approval: { state: 'failed', error: { code: 'mcp.tool_failed', message: 'no such place for ***' } } } })
  t.match(await gateway.tools!.settled(first, new AbortController().signal), { kind: 'done', value: { content: [{ text: 'moved' }] } })
  const late = idOf(await move('late'))
  remove()
  t.match(await gateway.approve(late), { json: { approval: { state: 'failed', error: { code: 'mcp.unknown_tool' } } } })
  await gateway.call('PATCH', '/api/settings', { approvals: { auto: ['files/move'] } })
})

t.test('the page of an approval shows what was asked as text, and decides for its own forms alone', async t => {
  const gateway = await inbox(t)
  const nasty = '</pre><script>fetch("/a")</script><form action="http://evil.example">" onload=\'x\' \u202Eslqm\u200B\u0007'
  const id = idOf(await gateway.ask({ model_id: nasty, note: nasty }, 'hermes'))
  const path = `/api/agent/approvals/${id}/page`
  const open = async (headers: Record<string, string> = {}): Promise<Answer> => {
    const answer = await gateway.fetch(path, { headers })
    return { status: answer.status, headers: answer.headers, text: await answer.text(), json: null }
  }
  interface Sent { readonly status: number, readonly text: string }
  const send = async (form: Record<string, string>, headers: Record<string, string> = {}): Promise<Sent> => {
    const body = new URLSearchParams(form).toString()
    const type = 'application/x-www-form-urlencoded'
    const answer = await gateway.fetch(path, { method: 'POST', headers: { 'content-type': type, ...headers }, body })
    return { status: answer.status, text: await answer.text() }
  }
  const page = await open()
  t.equal(page.status, 200)
  const policy = page.headers.get('content-security-policy')!
  for (const rule of ['default-src \'none\'', 'form-action \'self\'', 'base-uri \'none\'', 'frame-ancestors \'none\'']) t.ok(policy.includes(rule), rule)
  t.notMatch(policy, /unsafe|script-src/)
  t.equal(page.headers.get('x-frame-options'), 'DENY')
  t.match(page.headers.get('cache-control'), 'no-store')
  t.match(page.text, /<p id="state" data-state="pending">/)
  t.notMatch(page.text, /<script|<form action|onload='|\u202E|\u200B|\u0007/, 'no markup and nothing unseen of the agent\'s')
  t.match(page.text, /&lt;\/pre&gt;&lt;script&gt;[^]*\\u\{202e\}slqm\\u\{200b\}\\u\{7\}/, 'it is there as text')
  t.equal(page.text.match(/<form /g)!.length, 2)

  const approve = { decision: 'approve' }
  for (const [what, headers] of Object.entries({
    'a page of another origin': { origin: 'http://evil.example' },
    'another port of this machine': { origin: 'http://127.0.0.1:1' },
    'a frame without an origin': { origin: 'null' },
    'another site': { 'sec-fetch-site': 'cross-site' },
    'an agent': { 'x-svc-agent': 'hermes' }
  })) t.match(await send(approve, headers), { status: 403 }, what)
  t.match((await open({ 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'iframe' })).status, 403)
  for (const form of [{}, { decision: 'maybe' }, { decision: 'approve', also: 'x' }, { decision: 'deny', reason: 'x'.repeat(501) }]) {
    t.match(await send(form), { status: 400, text: /approvals\.no_decision/ }, JSON.stringify(form).slice(0, 60))
  }
  t.equal((await gateway.fetch(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(approve) })).status, 400)
  t.equal(gateway.ran.length, 0, 'and nothing ran')

  const { origin } = new URL(gateway.baseUrl)
  t.match(await send(approve, { origin, 'sec-fetch-site': 'same-origin' }), { status: 200, text: /data-state="executed"/ })
  t.match(await send({ decision: 'deny', reason: '' }), { status: 200, text: /data-state="executed"/ }, 'a second decision shows the first')
  t.equal(gateway.ran.length, 1)
  t.match((await gateway.call('GET', '/api/activity?action=approval.approve&outcome=ok')).json.records, [{ target: id, actor: 'dashboard' }])
  t.equal((await gateway.fetch('/api/agent/approvals/0123456789abcdef0123456789abcdef/page')).status, 404)

  let finish = (): void => {}
  gateway.works(() => new Promise(resolve => { finish = () => resolve({ started: true }) }))
  const slow = idOf(await gateway.ask({ model_id: 'slow' }))
  const answer = await gateway.fetch(`/api/agent/approvals/${slow}/page`, { method: 'POST', body: new URLSearchParams(approve) })
  t.match(await answer.text(), /http-equiv="refresh"[^]*data-state="approved"/, 'a call that takes long is looked at again')
  finish()
})
