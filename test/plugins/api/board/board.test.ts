import { once } from 'node:events'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { createTestGateway, type TestGateway } from '../../../../kernel/testing/index.js'
import activity from '../../../../plugins/api/activity/index.js'
import apiBoard from '../../../../plugins/api/board/index.js'
import board from '../../../../plugins/services/board/index.js'
import { FakeProcess, run } from '../../../cli/support.js'

interface Task {
  readonly id: string
  readonly title: string
  readonly status: string
  readonly revision: number
  readonly deps: { readonly parents: readonly string[], readonly children: readonly string[] }
}

interface Frame {
  readonly events: ReadonlyArray<{ readonly id: number, readonly kind: string, readonly task_id: string }>
  readonly cursor: number
  readonly gap?: true
}

type Answer = Record<string, unknown> & { readonly status_code: number, readonly etag: string | null }

let gateway: TestGateway
t.before(async () => { gateway = await createTestGateway({ plugins: [activity, board, apiBoard] }) })
t.teardown(() => gateway.close())

async function ask (method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> {
  const init = body === undefined ? {} : { body: JSON.stringify(body) }
  const response = await gateway.fetch(`/api/board${path}`, { method, headers: { 'content-type': 'application/json', ...headers }, ...init })
  return { ...await response.json() as object, status_code: response.status, etag: response.headers.get('etag') }
}

/** A board of the test's own. */
async function fresh (slug: string): Promise<string> {
  await ask('POST', '/boards', { slug })
  return `board=${slug}`
}

async function add (query: string, task: Record<string, unknown>): Promise<Task> {
  return (await ask('POST', `/tasks?${query}`, task)).task as Task
}

async function statusOf (query: string, id: string): Promise<string> {
  return (await ask('GET', `/tasks/${id}?${query}`)).status as string
}

const refused = (code: string, status = 409): object => ({ status_code: status, error: { code } })

t.test('a task moves through the lanes, and its revision keeps writers from undoing each other', async t => {
  const query = await fresh('lanes')
  const { id, ...made } = await add(query, { title: ' Paint the fence ', body: 'green', priority: 3 })
  t.match(id, /^t_[0-9a-f]{8}$/)
  t.match(made, { title: 'Paint the fence', status: 'triage', priority: 3, revision: 1, created_by: 'dashboard', comment_count: 0, dep_count: null })
  const first = await ask('PATCH', `/tasks/${id}?${query}`, { status: 'blocked', block_reason: 'no paint' }, { 'if-match': '"1"' })
  t.match(first, { status: 'blocked', block_reason: 'no paint', revision: 2, etag: '"2"' })
  t.match(await ask('PATCH', `/tasks/${id}?${query}`, { title: 'x' }, { 'if-match': '"1"' }), refused('board.stale_write'))
  t.match(await ask('DELETE', `/tasks/${id}?${query}`, undefined, { 'if-match': 'W/"1"' }), refused('board.stale_write'))
  t.match(await ask('PATCH', `/tasks/${id}?${query}`, { status: 'ready' }, { 'if-match': '*' }), { status: 'ready', block_reason: null })
  t.match(await ask('PATCH', `/tasks/${id}?${query}`, { status: 'running' }), refused('board.invalid_status'))
  t.match(await ask('PATCH', `/tasks/${id}?${query}`, { status: 'scheduled' }), refused('board.invalid_status'))
  const later = await add(query, { title: 'later', status: 'scheduled', schedule: 4e9 })
  t.match(await ask('PATCH', `/tasks/${later.id}?${query}`, { schedule: null }), refused('board.invalid_status'), 'it would never be ready')
  t.match(await ask('PATCH', `/tasks/${later.id}?${query}`, { status: 'triage', schedule: null }), { status: 'triage', schedule: null })
  await ask('DELETE', `/tasks/${later.id}?${query}`)
  t.match(await ask('PATCH', `/tasks/${id}?${query}`, { status: 'nowhere' }), refused('board.invalid_body', 400))
  t.match(await ask('POST', `/tasks/${id}/comments?${query}`, { body: 'Nearly there' }, { 'x-svc-agent': 'parrot' }),
    { comments: [{ author: 'mcp:parrot', body: 'Nearly there' }], comment_count: 1 })
  t.match(await ask('POST', `/tasks/${id}/reassign?${query}`, { profile: 'hermes' }), { assignee: 'hermes', profile: 'hermes' })
  t.match(await ask('POST', `/tasks/${id}/reassign?${query}`, {}), refused('board.invalid_body', 400))
  const { lanes } = await ask('GET', `?${query}`) as unknown as { lanes: Record<string, Task[]> }
  t.strictSame(Object.keys(lanes), ['triage', 'todo', 'scheduled', 'ready', 'running', 'blocked', 'review', 'done'])
  t.strictSame(lanes.ready!.map(task => task.id), [id])
  const { events } = await ask('GET', `/tasks/${id}?${query}`) as unknown as { events: Array<{ kind: string }> }
  t.strictSame(events.map(({ kind }) => kind), ['created', 'updated', 'updated', 'commented', 'updated'], 'refusals leave nothing')
  t.match(await ask('DELETE', `/tasks/${id}?${query}`), { ok: true })
  t.match(await ask('GET', `/tasks/${id}?${query}`), refused('board.task_not_found', 404))
  const rows = await (await gateway.fetch('/api/activity?category=board&action=board.task.*')).json() as { entries?: Array<{ action: string, outcome: string, actor: string }> }
  t.match(JSON.stringify(rows), /board\.task\.delete.*board\.task\.comment.*mcp:parrot/)
})

t.test('dependencies: no cycle, a child waits until its parents are done, and again when one is not', async t => {
  const query = await fresh('links')
  const [a, b, c] = [await add(query, { title: 'a' }), await add(query, { title: 'b' }), await add(query, { title: 'c', status: 'ready' })]
  const link = (parent: Task, child: Task, method = 'POST'): ReturnType<typeof ask> => method === 'POST'
    ? ask(method, `/links?${query}`, { parent_id: parent.id, child_id: child.id })
    : ask(method, `/links?${query}&parent_id=${parent.id}&child_id=${child.id}`)
  t.match(await link(a, b), { ok: true })
  t.match(await link(b, c), { ok: true })
  t.match(await link(c, a), refused('board.link_invalid'))
  t.match(await link(a, a), refused('board.link_invalid'))
  t.equal(await statusOf(query, c.id), 'todo', 'one that was ready waits')
  t.match(await ask('PATCH', `/tasks/${c.id}?${query}`, { status: 'ready' }), refused('board.invalid_status'))
  t.match(await ask('GET', `/tasks/${b.id}?${query}`), { deps: { parents: [a.id], children: [c.id] }, dep_count: '0/1' })
  await ask('PATCH', `/tasks/${b.id}?${query}`, { status: 'done' })
  t.equal(await statusOf(query, c.id), 'ready')
  await ask('PATCH', `/tasks/${b.id}?${query}`, { status: 'review' })
  t.equal(await statusOf(query, c.id), 'todo')
  t.match(await link(b, c, 'DELETE'), { ok: true })
  t.match(await link(b, c, 'DELETE'), refused('board.link_invalid'))
  const child = await add(query, { title: 'd', status: 'todo', parents: [a.id] })
  t.strictSame(child.deps.parents, [a.id])
  const other = await add(await fresh('links-elsewhere'), { title: 'elsewhere' })
  t.match(await link(other, c), refused('board.task_not_found', 404))
})

t.test('bulk changes happen to all tasks or to none', async t => {
  const query = await fresh('bulk')
  const tasks = [await add(query, { title: 'a' }), await add(query, { title: 'b' })]
  const ids = tasks.map(({ id }) => id)
  t.match(await ask('POST', `/tasks/bulk?${query}`, { ids: [...ids, 't_00000000'], status: 'done' }), refused('board.task_not_found', 404))
  t.equal(await statusOf(query, ids[0]!), 'triage')
  t.match(await ask('POST', `/tasks/bulk?${query}`, { ids: [...ids, ids[0]], status: 'archived' }), { updated: 2 })
  t.match(await ask('GET', `?${query}`), { lanes: { triage: { length: 0 } } })
  t.match(await ask('GET', `?${query}&include_archived=true`), { lanes: { archived: [{ id: ids[0] }, { id: ids[1] }] } })
  t.match(await ask('GET', `/stats?${query}`), { total: 2, by_status: { archived: 2, triage: 0 } })
})

t.test('of writers that have seen the same revision one is taken, and a bulk change comes wholly before or after', async t => {
  const query = await fresh('writers')
  const tasks = [await add(query, { title: 'a' }), await add(query, { title: 'b' })]
  const [{ id }] = tasks as [Task, Task]
  const answers = await Promise.all([
    ...Array.from({ length: 20 }, (_, i) => ask('PATCH', `/tasks/${id}?${query}`, { title: `writer ${i}` }, { 'if-match': '"1"' })),
    ...Array.from({ length: 5 }, () => ask('DELETE', `/tasks/${id}?${query}`, undefined, { 'if-match': '"1"' })),
    ask('POST', `/tasks/bulk?${query}`, { ids: tasks.map(task => task.id), priority: 7 })
  ])
  const bulk = answers.pop()!
  t.equal(answers.filter(({ status_code: status }) => status === 200).length <= 1, true, 'one at most')
  for (const answer of answers.filter(({ status_code: status }) => status !== 200)) {
    t.ok(['board.stale_write', 'board.task_not_found'].includes((answer.error as { code: string }).code))
  }
  const left = await ask('GET', `/tasks/${tasks[1]!.id}?${query}`)
  t.equal(left.priority, bulk.status_code === 200 ? 7 : 0)
  const revision = left.revision as number
  for (const header of ['"x"', '""', '1.5', '"1", "2"', '"-1"', `"${'9'.repeat(40)}"`, 'W/"0"']) {
    t.match(await ask('PATCH', `/tasks/${left.id as string}?${query}`, { title: 'x' }, { 'if-match': header }), refused('board.stale_write'), header)
  }
  t.match(await ask('GET', `/tasks/${left.id as string}?${query}`), { revision })
})

t.test('bodies, ids and addresses of an attacker are refused by name and change nothing', async t => {
  const query = await fresh('attacked')
  const { id } = await add(query, { title: 'stays' })
  const before = await ask('GET', `?${query}`)
  const send = async (
    method: string, path: string, body: string | Buffer, type = 'application/json'
  ): Promise<readonly [status: number, code: string]> => {
    const response = await gateway.fetch(`/api/board${path}`, { method, headers: { 'content-type': type }, ...(method === 'GET' ? {} : { body }) })
    const text = await response.text()
    t.ok(text.length < 2_000, `${path}: the answer is short`)
    return [response.status, (JSON.parse(text) as { error?: { code: string } }).error?.code ?? 'none']
  }
  const tasks = `/tasks?${query}`
  const invalid = [400, 'board.invalid_body'] as const
  const noObject = [400, 'request.not_an_object'] as const
  const json = JSON.stringify
  for (const [body, expected] of [
    ['', invalid], ['null', noObject], ['[]', noObject], ['"x"', noObject], ['{', [400, 'request.invalid_json']], [json({}), invalid],
    [Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]), invalid],
    [json({ title: ['x'] }), invalid], [json({ title: '  ' }), invalid], [json({ title: 'x', nothing: 1 }), invalid],
    ['{"title":"x","__proto__":{"status":"done"}}', invalid], [json({ title: 'x', body: 'x'.repeat(64 * 1024 + 1) }), invalid],
    [json({ title: 'x', priority: 1e308 }), invalid], ['{"title":"x","priority":1e999}', invalid], [json({ title: 'x', schedule: -1, status: 'scheduled' }), invalid],
    [json({ title: 'x', parents: [`${id}' OR 1=1`] }), invalid], [json({ title: 'x', parents: ['t_00000000'] }), [404, 'board.task_not_found']],
    [`{"title":${'['.repeat(5_000)}${']'.repeat(5_000)}}`, [400, 'request.too_complex']],
    [json({ title: 'x', body: 'y'.repeat(40 * 1024 * 1024) }), [413, 'request.too_large']]
  ] as const) {
    const [status, code] = await send('POST', tasks, body)
    t.strictSame([status, code], expected, body.toString().slice(0, 60))
  }
  t.match(await send('POST', tasks, 'title=x', 'application/x-www-form-urlencoded'), [400, 'request.invalid_json'])
  for (const [path, expected] of [
    ['/tasks/..%2f..%2fetc%2fpasswd', 404], [`/tasks/${'x'.repeat(5_000)}`, 400], ['/tasks/%ff', 400],
    [`/tasks/${id}?board=${'x'.repeat(49)}`, 400], [`/tasks/${id}?board=a&board=b`, 400], [`/tasks/${id}?board=__proto__`, 404],
    [`/tasks/${id}?board=attacked'--`, 404], [`/tasks/${id}?${query}&nothing=1`, 400], ['/runs/constructor', 404], [`/tasks/${id}/log?tail=-1&${query}`, 400],
    [`/tasks/${id}/log?tail=1e9&${query}`, 400], ['/profiles?board=%00', 404]
  ] as const) t.match(await send('GET', path, ''), [expected, /^(board|request|route|validation)\./], path)
  const bulk = (body: object): ReturnType<typeof send> => send('POST', `/tasks/bulk?${query}`, json(body))
  t.strictSame(await bulk({ ids: [], status: 'done' }), invalid)
  t.strictSame(await bulk({ ids: Array.from({ length: 1001 }, () => id), status: 'done' }), invalid)
  t.strictSame(await bulk({ ids: [id, '../x'], status: 'done' }), invalid)
  t.strictSame(await bulk({ ids: [id], status: 'running' }), [409, 'board.invalid_status'])
  t.strictSame(await send('POST', '/boards', json({ slug: '../x' })), invalid)
  t.strictSame(await send('PUT', '/orchestration', json({ auto_decompose: 'yes' })), invalid)
  t.strictSame(await ask('GET', `?${query}`), before)
  const odd = await add(query, { title: '\ud800 \u0000 \u202e "; DROP TABLE tasks; --', body: '\udfff' })
  t.match(await ask('GET', `/tasks/${odd.id}?${query}`), { id: odd.id, title: /DROP TABLE/ }, 'what is only odd is kept')

  const upgrade = async (path: string, headers: Record<string, string> = {}, origin?: string): Promise<number> => {
    const socket = new WebSocket(`${gateway.baseUrl.replace('http', 'ws')}/api/board/events${path}`, { headers, ...(origin === undefined ? {} : { origin }) })
    socket.on('error', () => {})
    const [, { statusCode }] = await once(socket, 'unexpected-response') as [unknown, { statusCode: number }]
    socket.terminate()
    return statusCode
  }
  for (const since of ['-1', 'x', '1.5', '1e99', '%00', '1&since=2']) t.equal(await upgrade(`?since=${since}`), 400, since)
  t.equal(await upgrade('?board=nowhere'), 404)
  for (const origin of ['https://evil.example', 'null', `${gateway.baseUrl}.evil.example`, 'file://']) t.equal(await upgrade('', {}, origin), 403, origin)
  t.equal(await upgrade('', { host: 'evil.example' }), 421, 'another name of this machine')
})

t.test('boards are made, renamed, switched to and deleted; the default one stays', async t => {
  t.match(await ask('POST', '/boards', { name: 'x' }), refused('board.slug_required'))
  t.match(await ask('POST', '/boards', { slug: 'garden', name: 'The garden' }), { slug: 'garden', name: 'The garden', count: 0, current: false })
  t.match(await ask('POST', '/boards', { slug: 'garden' }), refused('board.exists'))
  t.match(await ask('PATCH', '/boards/garden', { desc: 'grows' }), { name: 'The garden', desc: 'grows' })
  t.match(await ask('POST', '/boards/garden/switch'), { ok: true, slug: 'garden', current: 'garden' })
  const { id } = await add('', { title: 'in the current one' })
  t.match(await ask('GET', `/tasks/${id}?board=garden`), { id })
  t.match(await ask('GET', `/tasks/${id}?board=default`), refused('board.task_not_found', 404))
  t.match(await ask('DELETE', '/boards/default'), refused('board.invalid_body', 400))
  t.match(await ask('DELETE', '/boards/garden'), { ok: true })
  t.match(await ask('GET', '?board=garden'), refused('board.not_found', 404))
  const boards = Object.values(await ask('GET', '/boards')) as Array<{ slug?: string, current?: boolean, name?: string }>
  t.match(boards.find(({ slug }) => slug === 'default'), { current: true, name: 'operator board' }, 'and is current again')
  t.match(await ask('GET', '/diagnostics'), { ok: true, store: 'libsql' })
})

/** Frames of a socket, one after the other. */
function frames (t: Test, baseUrl: string, query: string): { readonly socket: WebSocket, readonly next: () => Promise<Frame> } {
  const socket = new WebSocket(`${baseUrl.replace('http', 'ws')}/api/board/events?${query}`)
  t.teardown(() => socket.terminate())
  const waiting: Frame[] = []
  let wake = (): void => {}
  socket.on('message', data => {
    waiting.push(JSON.parse((data as Buffer).toString()) as Frame)
    wake()
  })
  return {
    socket,
    next: async () => {
      while (waiting.length === 0) await new Promise<void>(resolve => { wake = resolve })
      return waiting.shift()!
    }
  }
}

t.test('every reader of the events sees all of its board, in order, from where it left off', async t => {
  const query = await fresh('watched')
  const readers = [frames(t, gateway.baseUrl, query), frames(t, gateway.baseUrl, query)]
  const [{ cursor: from }] = await Promise.all(readers.map(reader => reader.next())) as [Frame, Frame]
  const { id } = await add(query, { title: 'seen' })
  await add('board=default', { title: 'not of this board' })
  for (const { next } of readers) t.match(await next(), { events: [{ kind: 'created', task_id: id, board: 'watched' }] })
  const left = once(readers[0]!.socket, 'close')
  readers[0]!.socket.close()
  await left
  await ask('POST', `/tasks/${id}/comments?${query}`, { body: 'x' })
  await ask('DELETE', `/tasks/${id}?${query}`)
  const again = frames(t, gateway.baseUrl, `${query}&since=${from}`)
  const { events, cursor } = await again.next()
  t.strictSame(events.map(({ kind }) => kind), ['created', 'commented', 'deleted'])
  t.equal(cursor, events.at(-1)!.id)

  const ids = await Promise.all(Array.from({ length: 250 }, async (_, i) => (await add(query, { title: `task ${i}` })).id))
  const seen: number[] = []
  const late = frames(t, gateway.baseUrl, `${query}&since=${cursor}`)
  const first = await late.next()
  t.equal(first.events.length, 200, 'a frame has a bound')
  seen.push(...first.events.map(event => event.id), ...(await late.next()).events.map(event => event.id))
  t.equal(new Set(seen).size, ids.length)
  t.strictSame(seen, seen.toSorted((a, b) => a - b))
  t.match(await frames(t, gateway.baseUrl, `${query}&since=${cursor + 1_000_000}`).next(), { events: { length: 0 }, gap: true })
  const closed = once(late.socket, 'close') as Promise<[number, Buffer]>
  await ask('DELETE', '/boards/watched')
  const [code, reason] = await closed
  t.equal(code, 1011)
  t.match(reason.toString(), /^board\.not_found: /)
  const page = new WebSocket(`${gateway.baseUrl.replace('http', 'ws')}/api/board/events`, { origin: 'https://evil.example' })
  const [, refusal] = await once(page, 'unexpected-response') as [unknown, { statusCode: number }]
  t.equal(refusal.statusCode, 403)
  page.on('error', () => {})
  page.terminate()
  t.match(await ask('GET', '/events'), refused('request.upgrade_required', 426))
})

t.test('tasks and the numbers of events outlive the gateway', async t => {
  const home = t.testdir({})
  const open = (): Promise<TestGateway> => createTestGateway({ home, plugins: [board, apiBoard] })
  const first = await open()
  const send = async (it: TestGateway, title: string): Promise<Task> => {
    const response = await it.fetch('/api/board/tasks', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ title }) })
    return (await response.json() as { task: Task }).task
  }
  const reader = frames(t, first.baseUrl, '')
  await reader.next()
  const { id } = await send(first, 'kept')
  const { cursor } = await reader.next()
  const ended = once(reader.socket, 'close') as Promise<[number]>
  await send(first, 'while nothing reads it')
  await first.close()
  t.equal((await ended)[0], 1001)
  const second = await open()
  t.teardown(() => second.close())
  t.match(await (await second.fetch(`/api/board/tasks/${id}`)).json(), { id, title: 'kept' })
  const again = frames(t, second.baseUrl, `since=${cursor}`)
  t.equal((await again.next()).events.length, 1)
  await send(second, 'after')
  t.ok((await again.next()).cursor > cursor + 1)
})

t.test('svc board lists, shows, adds and moves tasks, and watches what happens', async t => {
  const slug = 'worked'
  await ask('POST', '/boards', { slug })
  const svc = (...args: readonly string[]): ReturnType<typeof run> => run(['board', ...args, '--board', slug, '--url', gateway.baseUrl])
  t.match(await svc('list'), { code: 0, stdout: /^There are no tasks\. Add one: svc board add/ })
  const watcher = new FakeProcess()
  const watching = watcher.run('board', 'watch', '--board', slug, '--since', '0', '--url', gateway.baseUrl)
  const { stdout } = await svc('add', 'Paint the fence', '--body', 'green', '--priority', '2')
  const [, id = ''] = /^(t_[0-9a-f]{8}) is in triage\.\n$/.exec(stdout) ?? []
  t.not(id, '')
  t.match(await svc('add', 'Sit on it', '--to', 'todo', '--after', id), { code: 0, stdout: / is in todo\.\n$/ })
  t.match(await svc('list'), { stdout: new RegExp(`^ID +LANE +PRIORITY +ASSIGNEE +DONE BEFORE +TASK\\n${id} +triage +2 +- +- +Paint the fence\n.*todo.* 0/1 `) })
  t.match(await svc('move', id.slice(2), 'blocked', '--reason', 'no paint', '--assignee', 'me'), { code: 0, stdout: `${id} is in blocked.\n` })
  t.match(await svc('show', id), { stdout: /lane +blocked: no paint\nassignee +me[^]*green\n/ })
  t.match(await svc('move', id, 'nowhere'), { code: 1, stderr: /board\.invalid_body/ })
  const [, gone = ''] = /^(t_[0-9a-f]{8})/.exec((await svc('add', 'over', '--to', 'archived')).stdout) ?? []
  t.notMatch((await svc('list')).stdout, gone)
  t.match((await svc('list', '--all')).stdout, gone)
  t.match(await svc('show', 'ffffffff'), { code: 1, stderr: /no task id starts with t_ffffffff/ })
  t.match(JSON.parse((await svc('show', id, '--json')).stdout), { id, status: 'blocked' })
  t.match(JSON.parse((await svc('list', '--json')).stdout), { lanes: { blocked: [{ id }], todo: [{ title: 'Sit on it' }] } })
  t.match(JSON.parse((await svc('add', 'x'.repeat(300), '--assignee', 'y'.repeat(64), '--json')).stdout), { task: { status: 'triage' } })
  t.match(JSON.parse((await svc('move', id, 'review', '--summary', 'done', '--json')).stdout), { id, status: 'review', summary: 'done' })
  const narrow = new FakeProcess({ tty: true, columns: 80 })
  t.equal((await narrow.run('board', 'list', '--board', slug, '--url', gateway.baseUrl)).code, 0)
  t.strictSame(narrow.stdout.text.split('\n').filter(line => line.length > 80), [], 'a list fits 80 columns, whatever is in it')
  await watcher.shows('stdout', 'blocked')
  t.match(watcher.stdout.text, new RegExp(`^${id} created: actor cli, title Paint the fence, status triage\n`))
  watcher.send('SIGINT')
  t.match(await watching, { code: 130 })
})
