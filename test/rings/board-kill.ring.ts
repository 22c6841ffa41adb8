import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { openSqlFile } from '../../kernel/sqlite/sql-file.js'
import { chatAnswer } from '../../kernel/testing/index.js'
import { api, liveHome, startLive, type LiveGateway } from '../e2e/live-gateway.js'
import { root } from '../repository.js'
import { fakeUpstream, upstreamTable } from '../wire/fake-upstream.js'

t.setTimeout(1_800_000)

interface Task {
  readonly id: string
  readonly title: string
  readonly status: string
  readonly deps: { readonly parents: readonly string[] }
  readonly events: ReadonlyArray<{ readonly kind: string }>
}

async function until (holds: () => Promise<boolean>): Promise<void> {
  while (!await holds()) await new Promise(resolve => { setTimeout(resolve, 10) })
}

/** Of one question, in dollars. */
const PRICE = 0.01
const PARTS = ['floor', 'roof']
const BUDGET = '/api/agents/pi/personas/pi/budget'

t.test('a gateway that is killed before any step of a plan that it makes by itself splits the task once, and charges each question once', async t => {
  const up = await fakeUpstream(t)
  const tasks = PARTS.map((title, i) => ({ title, after: i === 0 ? [] : [0] }))
  const answer = { headers: { 'content-type': 'application/json' }, chunks: [chatAnswer(JSON.stringify({ tasks }))] }
  const home = await liveHome(t, {
    'etc/svc/svc.toml': '[runtime]\ndriver = "process"\n[slots]\nautostart = false\n[plugins.config.board.plan]\nauto_per_hour = 1000\n',
    'etc/svc/upstreams.toml': upstreamTable('up', up.url),
    'etc/svc/prices.toml': `[prices."up/gpt-9"]\nrequest_usd = ${PRICE}\n`
  })
  const arm = join(home, 'arm')
  const database = join(home, 'var/lib/svc/plugin-state/board/board.db')
  const env = { NODE_OPTIONS: `--import=${join(root, 'dist/test/rings/support/kill-at.js')}`, SVC_RING_KILL: arm, SVC_RING_KILL_TABLE: 'auto_plans' }
  writeFileSync(arm, '0')
  let gateway: LiveGateway = await startLive(t, home, env)
  const board = async <T>(method: string, path: string, body?: object): Promise<T> => (await api(gateway, method, `/api/board${path}`, body)).json as T
  const all = async (): Promise<readonly Task[]> =>
    Object.values((await board<{ lanes: Record<string, readonly Task[]> }>('GET', '')).lanes).flat()
  const called = async (title: string): Promise<Task | undefined> => {
    const found = (await all()).find(task => task.title === title)
    return found === undefined ? undefined : await board<Task>('GET', `/tasks/${found.id}`)
  }
  const isSplit = async (title: string): Promise<boolean> => (await called(title))?.status === 'todo'
  const add = async (title: string): Promise<unknown> => await (await fetch(`${gateway.url}/api/board/tasks`, {
    method: 'POST', headers: { 'content-type': 'application/json', 'x-svc-agent': 'pi' }, body: JSON.stringify({ title })
  })).json()
  /** As if the minute before the next try were over. */
  const afterAMinute = async (): Promise<void> => {
    const file = await openSqlFile({ path: database, form: () => {}, durability: 'normal' })
    file.run('UPDATE auto_plans SET next_at = 0 WHERE state = \'waiting\'')
    file.close()
  }
  const rows = async (table: string): Promise<number> => {
    const file = await openSqlFile({ path: database, form: () => {}, durability: 'normal' })
    const { count } = file.get<{ count: number }>(`SELECT count(*) AS count FROM ${table}`)!
    file.close()
    return count
  }
  t.match(await api(gateway, 'PUT', BUDGET, { daily_usd: 100 }), { status: 200 })
  await board('PUT', '/orchestration', { auto_decompose: true, orchestrator_profile: 'gpt-9' })

  let made = 0
  /** One outcome, whatever happened before. */
  const isWhole = async (title: string, when: string): Promise<void> => {
    made++
    await until(() => isSplit(title))
    const task = (await called(title))!
    t.strictSame(task.events.filter(({ kind }) => kind === 'decompose').length, 1, `${when}: split once`)
    const parts = await Promise.all(task.deps.parents.map(id => board<Task>('GET', `/tasks/${id}`)))
    t.strictSame(parts.map(part => part.title).toSorted(), PARTS, `${when}: its parts`)
    t.equal((await all()).length, made * (PARTS.length + 1), `${when}: and no others`)
    const spent = Math.round(up.calls.length * PRICE * 100) / 100
    t.match(await api(gateway, 'GET', BUDGET), { json: { spend: { today_usd: spent } } }, `${when}: each question was charged once`)
  }
  const again = async (): Promise<void> => {
    await gateway.ended
    await afterAMinute()
    gateway = await startLive(t, home, env)
  }

  const at: string[] = []
  for (let step = 1; ; step++) {
    const title = `house ${step}`
    up.play(answer)
    writeFileSync(arm, String(step))
    let died = false
    const ended = gateway.ended.then(() => { died = true })
    await add(title).catch(() => undefined)
    await Promise.race([ended, until(() => isSplit(title)).catch(() => ended)])
    writeFileSync(arm, '0')
    // it may have come to its step right after what was seen
    await all().catch(() => ended)
    if (!died) {
      await isWhole(title, 'not killed')
      break
    }
    at.push(readFileSync(`${arm}.at`, 'utf8').split(/ \(|\n/, 1)[0]!)
    await again()
    // it had no answer, and is sent again where it was not taken
    if (await called(title) === undefined) await add(title)
    await isWhole(title, `killed before step ${step}, ${at.at(-1)}`)
  }
  for (const step of ['INSERT INTO tasks', 'INSERT OR IGNORE INTO auto_plans', 'INSERT INTO auto_asks', 'INSERT OR IGNORE INTO links', 'INSERT OR REPLACE INTO plans', 'COMMIT']) {
    t.ok(at.includes(step), `one of ${at.length} steps was: ${step}`)
  }

  up.play({ headAfterMs: Infinity })
  const asked = up.calls.length
  await add('asked')
  await up.call(asked)
  up.play(answer)
  await gateway.kill('SIGKILL')
  await again()
  await isWhole('asked', 'killed while the model thinks')
  t.equal(up.calls.length, asked + 2, 'which is asked once more')

  t.equal(await gateway.kill('SIGTERM'), 0, gateway.log())
  t.equal(await rows('auto_asks'), up.calls.length, 'the questions of the hour are those that were asked')
})
