import t from 'tap'
import approvalRoutes from '../../../../plugins/api/approvals/index.js'
import apiBoard from '../../../../plugins/api/board/index.js'
import boardChat from '../../../../plugins/api/board-chat/index.js'
import slotRoutes from '../../../../plugins/api/slots/index.js'
import mcpAll from '../../../../plugins/mcp/all/index.js'
import approvals from '../../../../plugins/services/approvals/index.js'
import board from '../../../../plugins/services/board/index.js'
import { FakeClock, type EngineScript, type SeenRequest } from '../../../../kernel/testing/index.js'
import { toolEngine, type SeenChat, type Turn } from '../../../wire/format/tool-engine.js'
import { until, wireGateway } from '../../../wire/wire-gateway.js'

interface Frame {
  readonly type: string
  readonly name?: string
  readonly text?: string
  readonly message?: string
  readonly arguments?: unknown
  readonly result?: unknown
}

t.test('a model looks after the board', async t => {
  const seen: SeenChat[] = []
  const requests: SeenRequest[] = []
  const clock = new FakeClock()
  let script: (request: SeenRequest) => EngineScript = toolEngine([{ content: 'nothing' }], seen)
  const gateway = await wireGateway(t, {
    clock,
    plugins: [board, apiBoard, boardChat, approvals, approvalRoutes, slotRoutes, mcpAll],
    onStart: ({ engine }) => engine.answer(request => {
      requests.push(request)
      return script(request)
    })
  })
  const { approvals: rows, activity } = gateway.gateway.kernel()
  const says = (turns: readonly Turn[]): void => {
    seen.length = 0
    script = toolEngine(turns, seen)
  }
  const post = (path: string, body: object, init: RequestInit = {}): Promise<Response> => gateway.fetch(path, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body), ...init
  })
  const chat = (body: object = {}, init: RequestInit = {}): Promise<Response> =>
    post('/api/board/chat', { model: 'agent', messages: [{ role: 'user', content: 'do it' }], ...body }, init)
  const framesOf = (text: string): Frame[] => [...text.matchAll(/^data: (.*)$/gm)].map(([, json]) => JSON.parse(json!) as Frame)
  const frames = async (body: object = {}): Promise<Frame[]> => framesOf(await (await chat(body)).text())
  const told = (): unknown[] => seen.at(-1)!.messages.filter(({ role }) => role === 'tool').map(({ content }) => JSON.parse(content as string) as unknown)
  const add = async (title: string, slug = 'default'): Promise<string> =>
    (await (await post(`/api/board/tasks?board=${slug}`, { title })).json() as { task: { id: string } }).task.id
  const task = async (id: string, slug = 'default'): Promise<Record<string, unknown>> =>
    await (await gateway.fetch(`/api/board/tasks/${id}?board=${slug}`)).json() as Record<string, unknown>
  const turns = () => activity.list({ action: 'board.chat.turn' })
  await post('/api/board/boards', { slug: 'garden' })

  await t.test('it works on its board with tools, and the client sees what it says and does', async t => {
    const [fence, gate] = [await add('fence', 'garden'), await add('gate', 'garden')]
    says([
      { reasoning: 'look first', content: 'One moment. ', calls: [
        ['get_board', {}], ['move_task', { task_id: fence, status: 'todo' }], ['assign_task', { task_id: fence, assignee: 'ann' }],
        ['add_dependency', { parent_id: fence, child_id: gate }], ['block_task', { task_id: gate, reason: 'no paint' }],
        ['comment_task', { task_id: gate, body: 'waiting' }], ['create_task', { title: 'paint' }]
      ] },
      { calls: [
        ['remove_dependency', { parent_id: fence, child_id: gate }], ['get_task', { task_id: gate }], ['get_assignees', {}], ['get_orchestration', {}],
        ['list_agents', {}], ['nudge_dispatcher', {}], ['list_slots', {}], ['get_slot', { name: 'agent' }], ['find_tool', { query: 'slot metrics' }],
        ['call_tool', { name: 'admin_slot_metrics' }], ['move_task', { task_id: fence }], ['fly', {}], ['get_board', '{"a"']
      ] },
      { content: 'All done.' }
    ])
    const all = await frames({ board: 'garden' })
    t.strictSame(all.filter(({ type }) => type === 'token').map(({ text }) => text).join(''), 'One moment. All done.')
    t.strictSame(all.filter(({ type }) => type === 'thinking').map(({ text }) => text).join(''), 'look first')
    const calls = all.filter(({ type }) => type === 'tool_call')
    const results = new Map(all.filter(({ type }) => type === 'tool_result').map(({ name, result }) => [name, result as { error?: string }]))
    t.match(calls[1], { name: 'move_task', arguments: { task_id: fence, status: 'todo' } })
    t.equal(calls.length, 20)
    t.equal(all.at(-1)!.type, 'done')
    t.match(results.get('get_slot'), { name: 'agent' })
    t.match(results.get('move_task'), { error: /do not fit: .*status/s })
    t.match(results.get('fly'), { error: /no tool 'fly'/ })
    t.match(results.get('get_board'), { error: /not JSON/ })
    for (const name of ['remove_dependency', 'get_task', 'get_assignees', 'get_orchestration', 'list_agents', 'nudge_dispatcher', 'list_slots', 'find_tool', 'call_tool']) {
      t.equal(results.get(name)?.error, undefined, `${name}: ${JSON.stringify(results.get(name)).slice(0, 200)}`)
    }
    t.match(await task(fence, 'garden'), { status: 'todo', assignee: 'ann' })
    t.match(await task(gate, 'garden'), { status: 'blocked', block_reason: 'no paint', comments: [{ body: 'waiting' }], deps: { parents: { length: 0 } } })
    t.equal(seen.length, 3)
    t.match(seen[0], { max_tokens: 4096, stream: true, messages: [{ role: 'system', content: /'garden'/ }, { role: 'user', content: 'do it' }] })
    t.match(turns()[0], { target: 'garden', outcome: 'ok', actor: 'dashboard' })
    const [platform] = activity.list({ action: 'platform.chat.turn' })
    t.match(platform, { target: 'garden', outcome: 'ok', request_id: turns()[0]!.request_id })
    t.strictSame(platform!.after, { model: 'agent', tools: ['list_slots', 'get_slot', 'find_tool', 'call_tool'] })
  })

  await t.test('calls that cannot be read are refused by name, and the conversation goes on without what they held', async t => {
    const deep = (levels: number): string => `{"title":${'['.repeat(levels)}${']'.repeat(levels)}}`
    const many = JSON.stringify(Object.fromEntries(Array.from({ length: 1001 }, (_, i) => [`k${i}`, i])))
    const given: readonly string[] = [deep(64), deep(20_000), many, `{"title":"${'x'.repeat(300_000)}"}`, '{"a"', '[1]', 'null', '"x"', '{"title":"\\ud800"}']
    says([{ calls: given.map(args => ['create_task', args] as const) }, { calls: [['constructor', {}], ['__proto__', {}]] }, { content: 'Oh.' }])
    const before = (await (await gateway.fetch('/api/board/stats')).json() as { total: number }).total
    const all = await frames()
    const refusals = all.filter(({ type, name }) => type === 'tool_result' && name === 'create_task').map(({ result }) => (result as { error?: string }).error)
    const tooDeep = /^request\.too_complex: .* nested too deeply; 64 levels/
    t.match(refusals, [tooDeep, tooDeep, /^request\.too_complex: .*1000 keys/, /longer than 262144 characters/, /not JSON/, /not a JSON object/, /not a JSON object/, /not a JSON object/])
    t.match(all.filter(({ name, type }) => type === 'tool_result' && name !== 'create_task'), [{ result: { error: /no tool 'constructor'/ } }, { result: { error: /no tool '__proto__'/ } }])
    t.match(all.slice(-2), [{ type: 'token', text: 'Oh.' }, { type: 'done' }])
    const kept = seen[1]!.messages.at(-10) as { tool_calls: ReadonlyArray<{ function: { arguments: string } }> }
    t.strictSame(kept.tool_calls.slice(0, 8).map(call => call.function.arguments), Array.from({ length: 8 }, () => '{}'))
    t.ok(all.every(frame => JSON.stringify(frame).length < 20_000))
    t.equal((await (await gateway.fetch('/api/board/stats')).json() as { total: number }).total - before, 1, 'the one that could be read was made')
    t.equal(activity.list({ action: 'platform.chat.turn' }).length, 1, 'nothing of the gateway was called')
  })

  await t.test('a gated call waits for the operator with signs of life, and its result goes on', async t => {
    says([{ calls: [['update_orchestration', { default_assignee: 'ann' }]] }, { content: 'Done.' }])
    const text = (await chat()).text()
    await until(() => rows.pending() > 0, 'the call waits')
    await clock.advance(15_000)
    await clock.advance(15_000)
    const [asked] = rows.list({ state: 'pending', limit: 1 })
    await post(`/api/agent/approvals/${asked!.id}/approve`, {})
    t.equal((await text).split(': keep-alive').length, 3)
    t.match(framesOf(await text), [{ type: 'tool_call' }, { type: 'tool_result', result: { default_assignee: 'ann' } }, { type: 'token' }, { type: 'done' }])

    says([{ calls: [['update_orchestration', { default_assignee: null }]] }, { content: 'Later.' }])
    const late = frames()
    await until(() => rows.pending() > 0, 'the call waits')
    await clock.advance(300_000)
    await late
    t.match(told(), [{ status: 'pending_approval' }])
    const [waiting] = rows.list({ state: 'pending', limit: 1 })
    await post(`/api/agent/approvals/${waiting!.id}/deny`, { reason: 'no' })
  })

  await t.test('a client that leaves ends the turn: nothing is approved, called or written after it', async t => {
    const before = await task(await add('untouched'))
    says([{ calls: [['update_orchestration', { default_assignee: 'eve' }], ['block_task', { task_id: before.id, reason: 'x' }]] }, { content: 'x' }])
    const leaving = new AbortController()
    const response = await chat({}, { signal: leaving.signal })
    await until(() => rows.pending() > 0, 'the call waits')
    leaving.abort()
    await t.rejects(response.text())
    await until(() => rows.pending() === 0, 'the call is taken back')
    t.match(rows.list({ state: 'denied', limit: 1 }), [{ reason: 'the chat that requested it was closed' }])
    await until(() => turns()[0]?.error === 'the client left', 'the turn is over')
    t.equal(seen.length, 1, 'the model is not asked again')
    t.strictSame(await task(before.id as string), before)

    script = () => ({ headAfterMs: Infinity })
    const count = requests.length
    const again = new AbortController()
    const left = await chat({}, { signal: again.signal })
    await until(() => requests.length > count, 'the model is asked')
    again.abort()
    await t.rejects(left.text())
    t.equal(await requests.at(-1)!.closed, 'aborted')
  })

  await t.test('it has eight answers and a limit of time, and failures are the last frame but one', async t => {
    says([{ calls: [['get_board', {}]] }])
    t.equal((await frames()).filter(({ type }) => type === 'tool_call').length, 7)
    t.strictSame(seen.map(({ tool_choice: choice }) => choice), [...Array.from({ length: 7 }, () => undefined), 'none'])
    says([{ refuse: { status: 500, body: '{"error":{"message":"out of memory"}}' } }])
    t.match(await frames(), [{ type: 'error', message: /out of memory/ }, { type: 'done' }])
    t.match(await frames({ model: 'no-such-model' }), [{ type: 'error', message: /no-such-model/ }, { type: 'done' }])
    script = () => ({ headAfterMs: Infinity })
    const count = requests.length
    const late = frames()
    await until(() => requests.length > count, 'the model is asked')
    await clock.advance(300_000)
    t.match(await late, [{ type: 'error', message: /300 seconds/ }, { type: 'done' }])
    const refusal = async (body: object): Promise<unknown> => (await chat(body)).json()
    t.match(await refusal({ board: 'nowhere' }), { error: { code: 'board.not_found' } })
    t.match(await refusal({ messages: [] }), { error: { code: 'board.invalid_body' } })
    t.match(await refusal({ messages: [{ role: 'tool', content: 'x' }] }), { error: { code: 'board.invalid_body' } })
  })
})
