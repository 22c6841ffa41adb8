import { join } from 'node:path'
import Database from 'libsql'
import t, { type Test } from 'tap'
import { definePlugin } from '../../../../kernel/contract/index.js'
import { createTestGateway, FakeClock, settle, type TestGateway } from '../../../../kernel/testing/index.js'
import apiBoard from '../../../../plugins/api/board/index.js'
import board from '../../../../plugins/services/board/index.js'
import { boardRef, type AgentOutcome, type AgentTask, type AgentWorld } from '../../../../plugins/services/board/ref.js'
import { until } from '../../../wire/wire-gateway.js'

interface Task {
  readonly id: string
  readonly status: string
  readonly summary: string | null
  readonly block_reason: string | null
  readonly runs: ReadonlyArray<{ readonly id: string, readonly state: string }>
}

/** A run of an agent that does what the test says. */
interface Work extends AgentWorld {
  readonly given: AgentTask
  readonly end: (outcome: AgentOutcome) => void
}

interface Rig extends TestGateway {
  readonly clock: FakeClock
  readonly works: Work[]
  readonly api: (method: string, path: string, body?: unknown, agent?: string) => Promise<Record<string, unknown>>
  readonly add: (task: Record<string, unknown>) => Promise<string>
  readonly task: (id: string) => Promise<Task>
}

async function rig (t: Test, config: Record<string, unknown> = {}): Promise<Rig> {
  const works: Work[] = []
  const agents = definePlugin({
    name: 'test-agents',
    kind: 'service',
    apiVersion: 1,
    requires: { board: boardRef },
    register (ctx) {
      ctx.services.board.useRunner({
        agents: () => [{ id: 'painter', label: 'The painter' }],
        run: (given, world) => new Promise((resolve, reject) => {
          works.push({ given, ...world, end: resolve })
          world.signal.addEventListener('abort', () => reject(world.signal.reason as Error))
        }),
        end: async () => {}
      })
    }
  })
  const clock = new FakeClock()
  const gateway = await createTestGateway({ plugins: [board, apiBoard, agents], clock, pluginConfig: { board: config } })
  t.teardown(() => gateway.close())
  const api: Rig['api'] = async (method, path, body, agent) => {
    const headers = { 'content-type': 'application/json', ...(agent === undefined ? {} : { 'x-svc-agent': agent }) }
    const response = await gateway.fetch(`/api/board${path}`, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) })
    const text = await response.text()
    return response.headers.get('content-type')?.startsWith('text/plain') === true ? { text } : JSON.parse(text) as Record<string, unknown>
  }
  return Object.assign(gateway, {
    clock,
    works,
    api,
    add: async (task: Record<string, unknown>) => (await api('POST', '/tasks', { status: 'ready', assignee: 'painter', ...task }) as { task: Task }).task.id,
    task: async (id: string) => await api('GET', `/tasks/${id}`) as unknown as Task
  })
}

t.test('ready tasks go to their agents, the most urgent first, and no more at a time than may', async t => {
  const it = await rig(t, { max_in_flight: 2 })
  await it.add({ title: 'of nobody that is here', assignee: 'stranger' })
  await it.add({ title: 'of nobody', assignee: null })
  const wall = await it.add({ title: 'wall' })
  await until(() => it.works.length === 1, 'the first begins by itself')
  const [late, urgent] = [await it.add({ title: 'late', status: 'todo' }), await it.add({ title: 'urgent', priority: 5, status: 'todo' })]
  await it.api('POST', '/tasks/bulk', { ids: [late, urgent], status: 'ready' })
  await until(() => it.works.length === 2, 'another one begins')
  t.equal(it.works[1]!.given.task.id, urgent)
  t.match(await it.api('POST', '/dispatch'), { dispatched: 0 })
  t.match(await it.api('GET', '/workers/active'), { 0: { id: wall, status: 'running', profile: 'painter' }, 1: { id: urgent } })
  t.match(await it.api('GET', '/profiles'), { 0: { id: 'painter', label: 'The painter', count: 3 } })
  t.match(await it.api('PATCH', '/profiles/painter', { label: 'Ann' }), { id: 'painter', label: 'Ann', count: 3 })
  t.match(await it.api('GET', '/profiles'), { 0: { label: 'Ann' } })
  t.match(await it.api('PATCH', '/profiles/painter', { label: null }), { label: 'The painter' })
  t.match(await it.api('PATCH', '/profiles/stranger', { label: 'x' }), { error: { code: 'board.profile_not_found' } })
  t.match(await it.api('PATCH', '/profiles/painter', { label: ' ' }), { error: { code: 'board.invalid_body' } })
  t.match(await it.api('GET', '/assignees'), { 0: 'painter', 1: 'stranger' })
  t.match(await it.api('GET', '/config'), { tick_interval: 30, failure_limit: 3, claim_ttl: 3600, max_in_flight: 2 })
  it.works[0]!.log('one coat')
  it.works[0]!.log('two coats')
  it.works[0]!.end({ ok: true, message: 'it is green' })
  await until(() => it.works.length === 3, 'the next one begins')
  const done = await it.task(wall)
  t.match(done, { status: 'done', summary: 'it is green', runs: [{ state: 'done', profile: 'painter', msg: 'it is green', dur: Number }] })
  t.match(await it.api('GET', `/tasks/${wall}/log`), { text: 'one coat\ntwo coats\n' })
  t.match(await it.api('GET', `/tasks/${wall}/log?tail=1`), { text: 'two coats\n' })
  t.match(await it.api('GET', `/runs/${done.runs[0]!.id}`), { task_id: wall, state: 'done' })
  t.match(await it.api('GET', '/runs/r_0000000000000000'), { error: { code: 'board.run_not_found' } })
  await it.api('PUT', '/orchestration', { default_assignee: 'painter' })
  it.works[1]!.end({ ok: true, message: '' })
  await until(() => it.works.length === 4, 'a task of nobody goes to the default agent')
  t.equal(it.works[3]!.given.task.title, 'of nobody')
})

t.test('ready tasks of people, however many and urgent, do not keep agents from theirs', async t => {
  const it = await rig(t)
  await Promise.all(Array.from({ length: 201 }, (_, count) => it.add({ title: `for a person ${count}`, assignee: 'person', priority: 9 })))
  const wall = await it.add({ title: 'wall' })
  await it.api('POST', '/dispatch')
  t.strictSame(it.works.map(({ given }) => given.task.id), [wall])
})

t.test('a run that fails or takes too long gives the task back, until it has failed too often in a row', async t => {
  const it = await rig(t, { failure_limit: 2, claim_ttl_s: 60 })
  const id = await it.add({ title: 'wall' })
  await until(() => it.works.length === 1, 'it begins')
  it.works[0]!.end({ ok: false, message: 'no paint' })
  await until(() => it.works.length === 2, 'it is tried again')
  await it.clock.advance(60_000)
  await until(() => it.works[1]!.signal.aborted, 'the claim ends')
  const blocked = await it.task(id)
  t.match(blocked, { status: 'blocked', block_reason: /^2 runs failed, the last with: the agent did not finish within 60 seconds$/ })
  t.strictSame(blocked.runs.map(({ state }) => state), ['failed', 'timed_out'])
  await it.api('PATCH', `/tasks/${id}`, { status: 'ready' })
  await until(() => it.works.length === 3, 'an operator may say that it can go on')
  it.works[2]!.end({ ok: false, message: 'still none' })
  await until(() => it.works.length === 4, 'and the count begins anew')
})

t.test('a run whose lines cannot be kept, as on a full disk, goes on to its end', async t => {
  const it = await rig(t)
  const id = await it.add({ title: 'wall' })
  await until(() => it.works.length === 1, 'it begins')
  const database = new Database(join(it.home, 'var/lib/svc/plugin-state/board/board.db'))
  t.teardown(() => database.close())
  database.exec('CREATE TRIGGER full BEFORE UPDATE OF log ON runs BEGIN SELECT RAISE(FAIL, \'disk is full\'); END')
  it.works[0]!.log('one more brick')
  await it.clock.advance(60_000)
  it.works[0]!.log('and one more')
  it.works[0]!.end({ ok: true, message: 'it stands' })
  while ((await it.task(id)).status === 'running') await settle()
  t.match(await it.task(id), { status: 'done', summary: 'it stands', runs: [{ state: 'done' }] })
})

t.test('an agent ends when its task is taken from it, and may move its own task', async t => {
  const it = await rig(t, { max_in_flight: 1 })
  const moved = await it.add({ title: 'moved', priority: 3 })
  const [deleted, own] = [await it.add({ title: 'deleted', priority: 2 }), await it.add({ title: 'own', priority: 1 })]
  await until(() => it.works.length === 1, 'the first begins')
  t.match(await it.api('POST', `/tasks/${moved}/reclaim`), { status: 'ready', runs: [{ state: 'stopped' }] })
  t.ok(it.works[0]!.signal.aborted)
  t.match(await it.api('POST', `/tasks/${deleted}/reclaim`), { error: { code: 'board.invalid_status' } })
  await until(() => it.works.length === 2, 'it begins again')
  await it.api('PATCH', `/tasks/${moved}`, { status: 'review' })
  await until(() => it.works.length === 3, 'the next one begins')
  t.ok(it.works[1]!.signal.aborted)
  t.equal((await it.task(moved)).status, 'review')
  await it.api('DELETE', `/tasks/${deleted}`)
  await until(() => it.works.length === 4, 'the last one begins')
  await it.api('PATCH', `/tasks/${own}`, { status: 'review', summary: 'look at it' }, 'painter')
  await settle()
  await settle()
  t.notOk(it.works[3]!.signal.aborted)
  it.works[3]!.end({ ok: true, message: 'ready for you' })
  await it.close()
  t.equal(it.works.length, 4)
})

t.test('an agent ends when the board of its task is deleted', async t => {
  const it = await rig(t)
  await it.api('POST', '/boards', { slug: 'shed' })
  await it.api('POST', '/tasks?board=shed', { title: 'door', status: 'ready', assignee: 'painter' })
  await until(() => it.works.length === 1, 'it begins')
  await it.api('DELETE', '/boards/shed')
  await until(() => it.works[0]!.signal.aborted, 'it ends')
  t.match((it.works[0]!.signal.reason as Error).message, 'the task was deleted')
})

t.test('a task that waited stays in todo where auto_promote_children is off', async t => {
  const it = await rig(t)
  await it.api('PUT', '/orchestration', { auto_promote_children: false })
  const wall = await it.add({ title: 'wall', status: 'todo', assignee: null })
  const roof = await it.add({ title: 'roof', status: 'todo', parents: [wall] })
  await it.api('PATCH', `/tasks/${wall}`, { status: 'done' })
  t.equal((await it.task(roof)).status, 'todo')
  await it.api('PUT', '/orchestration', { auto_promote_children: true })
  await it.api('PATCH', `/tasks/${wall}`, { status: 'review' })
  await it.api('PATCH', `/tasks/${wall}`, { status: 'done' })
  await until(() => it.works.length === 1, 'switched on, it goes to its agent')
  t.equal(it.works[0]!.given.task.id, roof)
})

t.test('a scheduled task is ready when its time has come', async t => {
  const it = await rig(t, { tick_interval_s: 10 })
  const id = await it.add({ title: 'tomorrow', status: 'scheduled', schedule: it.clock.now() / 1000 + 15 })
  await it.clock.advance(10_000)
  t.equal((await it.task(id)).status, 'scheduled')
  await it.clock.advance(10_000)
  await until(() => it.works.length === 1, 'it begins')
})
