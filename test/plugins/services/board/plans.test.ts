import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { WebSocket } from 'ws'
import apiBoard from '../../../../plugins/api/board/index.js'
import board from '../../../../plugins/services/board/index.js'
import { openSqlFile } from '../../../../kernel/sqlite/sql-file.js'
import { chatAnswer, FakeClock, type EngineScript, type SeenRequest } from '../../../../kernel/testing/index.js'
import { until, wireGateway, type WireGateway } from '../../../wire/wire-gateway.js'

interface Task {
  readonly id: string
  readonly title: string
  readonly body: string
  readonly status: string
  readonly assignee: string | null
  readonly revision: number
  readonly deps: { readonly parents: readonly string[] }
  readonly comments: ReadonlyArray<{ readonly author: string, readonly body: string }>
  readonly events: ReadonlyArray<{ readonly kind: string }>
}

const BOARD = 'var/lib/svc/plugin-state/board'

interface Asked {
  readonly messages: ReadonlyArray<{ readonly content: string }>
  readonly max_tokens: number
  readonly response_format?: unknown
}

/** Gives a task as many comments as it may have. */
async function talkedOver ({ home }: WireGateway, task: string): Promise<void> {
  const file = await openSqlFile({ path: join(home, BOARD, 'board.db'), form: () => {}, durability: 'normal' })
  file.transaction(() => { for (let i = 0; i < 1_000; i++) file.run('INSERT INTO comments (task, author, at, body) VALUES (?, \'ann\', 0, \'hm\')', [task]) })
  file.close()
}

const json = (status: number, body: string): EngineScript => ({ status, headers: { 'content-type': 'application/json' }, chunks: [body] })

t.test('a model specifies and decomposes tasks', async t => {
  const asked: Asked[] = []
  const seen: SeenRequest[] = []
  let answer: (chat: Asked) => EngineScript = () => json(200, chatAnswer('?'))
  const clock = new FakeClock()
  const gateway = await wireGateway(t, {
    clock,
    plugins: [board, apiBoard],
    pluginConfig: { board: { plan: { most_parts: 3, most_depth: 1, max_tokens: 300, timeout_s: 60, auto_per_hour: 9 } } },
    onStart: ({ engine }) => engine.answer(request => {
      seen.push(request)
      const chat = JSON.parse(request.body.toString()) as Asked
      asked.push(chat)
      return answer(chat)
    })
  })
  const call = async (method: string, path: string, body?: unknown, init: RequestInit = {}): Promise<Record<string, unknown>> => {
    const json = body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
    const response = await gateway.fetch(`/api/board${path}`, { method, ...json, ...init })
    return await response.json() as Record<string, unknown>
  }
  const task = async (id: string): Promise<Task> => await call('GET', `/tasks/${id}`) as unknown as Task
  const add = async (words: Record<string, unknown>): Promise<Task> => (await call('POST', '/tasks', words) as { task: Task }).task
  const count = async (): Promise<unknown> => (await call('GET', '/stats')).total
  const says = (value: unknown): void => { answer = () => json(200, chatAnswer(typeof value === 'string' ? value : JSON.stringify(value))) }
  const noPlan = (why: RegExp): object => ({ error: { code: 'board.no_plan', message: why } })
  await call('PUT', '/orchestration', { orchestrator_profile: 'agent' })

  await t.test('specify writes the task anew in one change, and undo takes it back', async t => {
    const { id } = await add({ title: 'fence', body: 'the old one' })
    await call('POST', `/tasks/${id}/comments`, { body: 'green, please' })
    says('<think>hm</think>\n```json\n{"title": "Paint the fence", "body": "## Goal\\nA green fence"}\n```')
    t.match(await call('POST', `/tasks/${id}/specify`), { title: 'Paint the fence', body: '## Goal\nA green fence', status: 'todo', revision: 3 })
    t.match(JSON.parse(asked.at(-1)!.messages[1]!.content), { title: 'fence', body: 'the old one', comments: [{ body: 'green, please' }] })
    t.match(asked.at(-1), { max_tokens: 300, response_format: { type: 'json_schema' } })
    t.match((await task(id)).events.at(-1), { kind: 'specify', json: { actor: 'dashboard' } })
    t.match(await call('POST', `/tasks/${id}/undo`), { title: 'fence', body: 'the old one', status: 'triage' })
    t.match(await call('POST', `/tasks/${id}/undo`), { error: { code: 'board.nothing_to_undo' } })
    await call('POST', `/tasks/${id}/specify`)
    await call('PATCH', `/tasks/${id}`, { body: 'by hand' })
    t.match(await call('POST', `/tasks/${id}/undo`), { error: { code: 'board.stale_write', details: { task: id } } })
    t.equal((await task(id)).body, 'by hand')
  })

  await t.test('an answer that does not fit changes nothing and says why', async t => {
    const { id } = await add({ title: 'wall' })
    const before = await task(id)
    for (const [said, why] of [
      ['I would rather not', /answered with something that is not JSON: I would rather not; nothing was changed/],
      ['{"title": "x"', /not JSON/],
      ['[1]', /is invalid/],
      [{ title: '', body: 'x' }, /is invalid: title/],
      [{ title: 'x'.repeat(501), body: 'x' }, /title/]
    ] as const) {
      says(said)
      t.match(await call('POST', `/tasks/${id}/specify`), noPlan(why))
    }
    answer = () => json(200, chatAnswer('{"title":"a","body":"b"}').replace('"stop"', '"length"'))
    t.match(await call('POST', `/tasks/${id}/specify`), noPlan(/is too long/))
    answer = () => json(500, '{"error":{"message":"out of memory"}}')
    t.match(await call('POST', `/tasks/${id}/specify`), noPlan(/answered 500: .*out of memory/))
    const part = (title: string, after: readonly number[] = []): object => ({ title, after })
    for (const [tasks, why] of [
      [[], /tasks/], [[part('a'), part('b'), part('c'), part('d')], /tasks/], [[part('a', [1]), part('b')], /part 0 may come after earlier parts alone/], [[part('a', [0])], /part 0/]
    ] as const) {
      says({ tasks })
      t.match(await call('POST', `/tasks/${id}/decompose`), noPlan(why))
    }
    t.strictSame(await task(id), before)
    answer = chat => chat.response_format === undefined ? json(200, chatAnswer('{"title":"Wall","body":"b"}')) : json(400, '{"error":{"message":"response_format?"}}')
    t.match(await call('POST', `/tasks/${id}/specify`), { title: 'Wall' }, 'a model that knows no schemas is asked without')
  })

  await t.test('decompose makes parts that the task waits for, to a depth, and undo deletes them', async t => {
    const { id } = await add({ title: 'house', assignee: 'ann', priority: 4 })
    says({ tasks: [{ title: 'floor', body: 'of wood' }, { title: 'walls', assignee: 'nobody-here', after: [0] }, { title: 'roof', after: [0, 1] }] })
    const before = await count()
    const house = await call('POST', `/tasks/${id}/decompose`) as unknown as Task
    const [floor, walls, roof] = await Promise.all(house.deps.parents.map(task)).then(parts => ['floor', 'walls', 'roof'].map(title => parts.find(part => part.title === title)!)) as [Task, Task, Task]
    t.match(house, { status: 'todo', dep_count: '0/3', events: Array })
    t.match(floor, { status: 'ready', body: 'of wood', assignee: 'ann', priority: 4 })
    t.match(walls, { status: 'todo', assignee: 'ann', deps: { parents: [floor.id] } })
    t.equal(roof.deps.parents.length, 2)
    t.match(await call('POST', `/tasks/${floor.id}/decompose`), { error: { code: 'board.too_deep' } })
    t.match(await call('POST', `/tasks/${id}/undo`), { status: 'triage', deps: { parents: { length: 0 }, children: { length: 0 } }, dep_count: null })
    t.equal(await count(), before)
    t.match(await call('GET', `/tasks/${floor.id}`), { error: { code: 'board.task_not_found' } })
    const again = await call('POST', `/tasks/${id}/decompose`) as unknown as Task
    await call('PATCH', `/tasks/${again.deps.parents[0]}`, { status: 'done' })
    t.match(await call('POST', `/tasks/${id}/undo`), { error: { code: 'board.stale_write' } }, 'what was worked at stays')
    t.equal((await task(id)).deps.parents.length, 3)
  })

  await t.test('a task that changes while the model thinks is left as it is', async t => {
    const { id, revision } = await add({ title: 'gate' })
    let go = (): void => {}
    const asking = seen.length
    answer = () => ({ ...json(200, chatAnswer('{"title":"Gate","body":"b"}')), after: new Promise<void>(resolve => { go = resolve }) })
    const plan = call('POST', `/tasks/${id}/specify`)
    await until(() => seen.length > asking, 'the model is asked')
    t.match(await call('POST', `/tasks/${id}/decompose`), { error: { code: 'board.invalid_status', message: /is already planning/ } })
    await call('PATCH', `/tasks/${id}`, { priority: 1 })
    go()
    t.match(await plan, { error: { code: 'board.stale_write' } })
    t.match(await task(id), { title: 'gate', status: 'triage' })
    t.match(await call('POST', `/tasks/${id}/specify`, undefined, { headers: { 'if-match': `"${revision}"` } }), { error: { code: 'board.stale_write' } })
    t.equal(seen.length, asking + 1, 'a stale writer asks no model')
    for (const status of ['review', 'done', 'archived']) {
      await call('PATCH', `/tasks/${id}`, { status })
      t.match(await call('POST', `/tasks/${id}/specify`), { error: { code: 'board.invalid_status' } })
    }
  })

  await t.test('tasks that enter triage are decomposed by themselves, each once, as long as that is switched on', async t => {
    const split = { tasks: [{ title: 'part one' }, { title: 'part two', after: [0] }] }
    /** By the titles of their tasks. */
    const questions = (): string[] => asked.map(({ messages }) => (JSON.parse(messages[1]!.content) as { title: string }).title)
    const events: string[] = []
    const socket = new WebSocket(`${gateway.baseUrl.replace('http', 'ws')}/api/board/events?since=0`)
    t.teardown(() => socket.terminate())
    socket.on('message', data => {
      const frame = JSON.parse((data as Buffer).toString()) as { events: ReadonlyArray<{ kind: string, task_id: string }> }
      events.push(...frame.events.map(({ kind, task_id: id }) => `${kind} ${id}`))
    })
    const decomposed = (id: string): Promise<void> => until(() => events.includes(`decompose ${id}`), 'it is decomposed')
    asked.length = 0
    const payers: unknown[] = []
    answer = () => {
      payers.push(gateway.gateway.inference().requests.list()[0]?.agent)
      return json(200, chatAnswer(JSON.stringify(split)))
    }
    const early = await add({ title: 'before it was switched on' })
    t.match(await call('GET', '/orchestration'), { auto_decompose: false })
    t.match(await call('PUT', '/orchestration', { auto_decompose: true }), { auto_decompose: true, orchestrator_profile: 'agent' })
    const made = await add({ title: 'made', assignee: 'ann' })
    await decomposed(made.id)
    const whole = await task(made.id)
    t.match(whole, { status: 'todo', assignee: 'ann', deps: { parents: [String, String] } })
    t.match(whole.events.at(-1), { kind: 'decompose', json: { actor: 'system' } })
    t.match(await call('POST', `/tasks/${made.id}/undo`), { status: 'triage', deps: { parents: { length: 0 } } })
    await call('PATCH', `/tasks/${made.id}`, { status: 'todo' })
    await call('PATCH', `/tasks/${made.id}`, { status: 'triage' })
    const moved = await add({ title: 'moved', status: 'todo' })
    await call('PATCH', `/tasks/${moved.id}`, { status: 'triage' })
    await decomposed(moved.id)
    const deepest = await task((await task(moved.id)).deps.parents[0]!)
    await call('PATCH', `/tasks/${deepest.id}`, { status: 'triage' })
    const byAgent = await call('POST', '/tasks', { title: 'by an agent' }, { headers: { 'content-type': 'application/json', 'x-svc-agent': 'parrot' }, body: JSON.stringify({ title: 'by an agent' }) }) as { task: Task }
    await decomposed(byAgent.task.id)
    t.strictSame(payers, [null, null, 'parrot'])
    t.strictSame(questions(), ['made', 'moved', 'by an agent'], 'neither one that was undone, nor one that was there, nor a part at the bottom')
    t.equal((await task(early.id)).status, 'triage')

    answer = () => ({ headAfterMs: Infinity })
    const open = await add({ title: 'open' })
    await add({ title: 'waits' })
    await until(() => asked.length === 4, 'the model is asked')
    await call('PUT', '/orchestration', { auto_decompose: false })
    t.equal(await seen.at(-1)!.closed, 'aborted')
    says(split)
    await call('PUT', '/orchestration', { auto_decompose: true })
    const last = await add({ title: 'last' })
    await decomposed(last.id)
    t.strictSame(questions().slice(3), ['open', 'last'], 'what waited is forgotten')
    t.match(await task(open.id), { status: 'triage', deps: { parents: { length: 0 } } })

    answer = () => json(500, '{"error":{"message":"out of memory"}}')
    const failing = await add({ title: 'failing' })
    await talkedOver(gateway, failing.id)
    for (const [tries, ms] of [[1, 60_000], [2, 600_000], [3, 0]] as const) {
      await until(() => questions().filter(title => title === 'failing').length === tries, `try ${tries}`)
      await until(() => gateway.gateway.inference().dispatcher.active.size === 0, 'it is over')
      await clock.advance(ms)
    }
    await until(() => events.includes(`commented ${failing.id}`), 'it is told')
    const { status, comments } = await task(failing.id)
    t.equal(status, 'triage')
    t.match(comments.at(-1), { author: 'system', body: /^Not decomposed automatically: .*out of memory/ }, 'also where nobody else can comment')
    t.match(await call('POST', `/tasks/${failing.id}/comments`, { body: 'why?' }), { error: { code: 'board.full' } })
    says(split)
    const behind = await add({ title: 'behind it' })
    await decomposed(behind.id)
    const count = asked.length
    await add({ title: 'one too many within the hour' })
    await clock.advance(60_000)
    t.equal(asked.length, count)
    await clock.advance(3_600_000)
    await until(() => asked.length === count + 1, 'an hour later there is room')
    await call('PUT', '/orchestration', { auto_decompose: false })
  })

  await t.test('a model that takes too long, and a client that leaves, end the question', async t => {
    const { id } = await add({ title: 'path' })
    answer = () => ({ headAfterMs: Infinity })
    let asking = seen.length
    const late = call('POST', `/tasks/${id}/specify`)
    await until(() => seen.length > asking, 'the model is asked')
    await clock.advance(60_000)
    t.match(await late, noPlan(/did not answer within 60 seconds/))
    t.equal(await seen.at(-1)!.closed, 'aborted')
    asking = seen.length
    const leaving = new AbortController()
    const left = call('POST', `/tasks/${id}/decompose`, undefined, { signal: leaving.signal })
    await until(() => seen.length > asking, 'the model is asked again')
    leaving.abort()
    await t.rejects(left)
    t.equal(await seen.at(-1)!.closed, 'aborted')
    says({ title: 'Path', body: 'of stone' })
    await until(() => gateway.gateway.inference().dispatcher.active.size === 0, 'nothing goes on')
    t.match(await call('POST', `/tasks/${id}/specify`), { title: 'Path' })
  })
})

t.test('a task that a killed gateway was having decomposed is decomposed by the next one, and once', async t => {
  const clock = new FakeClock()
  let asked = 0
  let answer: EngineScript = { headAfterMs: Infinity }
  const homes = t.testdir({})
  let homesMade = 0
  const start = async (crashed: WireGateway | null): Promise<WireGateway> => {
    const home = join(homes, String(homesMade++))
    // as it lies on the disk, without an end
    if (crashed !== null) {
      await cp(join(crashed.home, BOARD), join(home, BOARD), { recursive: true })
      await crashed.close()
    }
    return await wireGateway(t, {
      home,
      clock,
      plugins: [board, apiBoard],
      onStart: ({ engine }) => engine.answer(() => {
        asked++
        return answer
      })
    })
  }
  const call = async (gateway: WireGateway, method: string, path: string, body?: object): Promise<Record<string, unknown>> => {
    const init = body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
    return await (await gateway.fetch(`/api/board${path}`, { method, ...init })).json() as Record<string, unknown>
  }
  const first = await start(null)
  await call(first, 'PUT', '/orchestration', { auto_decompose: true, orchestrator_profile: 'agent' })
  const { task: { id } } = await call(first, 'POST', '/tasks', { title: 'house' }) as { task: Task }
  await until(() => asked === 1, 'a model is asked')
  answer = json(200, chatAnswer(JSON.stringify({ tasks: [{ title: 'floor' }, { title: 'roof', after: [0] }] })))
  const second = await start(first)
  let whole: Task
  for (;;) {
    whole = await call(second, 'GET', `/tasks/${id}`) as unknown as Task
    if (whole.status !== 'triage') break
    await clock.advance(30_000)
  }
  t.match(whole, { status: 'todo', deps: { parents: [String, String] } })
  t.equal(asked, 2)

  const third = await start(second)
  await clock.advance(3_600_000)
  t.match(await call(third, 'GET', '/stats'), { total: 3 })
  t.equal(asked, 2)
  t.match(await call(third, 'POST', `/tasks/${id}/undo`), { status: 'triage' }, 'and it can be taken back')
})
