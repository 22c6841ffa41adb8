import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { defineAgent, definePlugin } from '../../../../kernel/contract/index.js'
import { createTestGateway } from '../../../../kernel/testing/index.js'
import apiBoard from '../../../../plugins/api/board/index.js'
import agents from '../../../../plugins/services/agents/index.js'
import { agentLifecycleRef, type AgentLifecycle } from '../../../../plugins/services/agents/ref.js'
import personas from '../../../../plugins/services/agent-personas/index.js'
import boardAgents from '../../../../plugins/services/board-agents/index.js'
import board from '../../../../plugins/services/board/index.js'
import { tinyEnvironments } from '../tiny-environments.js'

/** Does what the title of its task says. */
const tiny = `#!/bin/sh
echo "wired for $MODEL in $PWD"
case "$2" in
  *"Task: works"*) printf '%s' "$2" > prompt; echo "did $SVC_TASK of $SVC_BOARD" ;;
  *"Task: fails"*) echo '{"failed": true}' > "$3"; echo "no model" ;;
  *"Task: waits"*) echo $$ > waiting; while true; do sleep 0.05; done ;;
esac
`

const describe = defineAgent({
  id: 'tiny',
  name: 'Tiny',
  description: 'does tasks',
  licence: { name: 'MIT', url: null },
  program: 'tiny',
  requests: [],
  install: { npm: { package: 'tiny', version: '1.0.0', bytes: 1 } },
  wiring: ({ model }) => ({ env: { MODEL: model } }),
  task: {
    args: (prompt, report) => ['do', prompt, report],
    problem: report => report === null ? null : (JSON.parse(report) as { failed: boolean }).failed ? 'its report says so' : null
  }
})

interface Task {
  readonly id: string
  readonly status: string
  readonly summary: string | null
  readonly block_reason: string | null
  readonly runs: ReadonlyArray<{ readonly state: string, readonly msg: string | null }>
}

t.test('programs take tasks of the board', async t => {
  const folder = t.testdir({
    // in a session of its own, and with the output still open
    'leaves.sh': 'setsid sleep 1000 &\necho "it is green"\n',
    'endless.sh': 'head -c 3000000 /dev/zero | tr "\\0" x\n',
    'fails.sh': 'echo "no paint"\nexit 3\n'
  })
  const command = (name: string): object => ({ command: ['/bin/sh', `${name}.sh`], folder })
  let lifecycle: AgentLifecycle | undefined
  const crew = definePlugin({
    name: 'test-crew',
    kind: 'service',
    apiVersion: 1,
    requires: { lifecycle: agentLifecycleRef },
    register (ctx) {
      lifecycle = ctx.services.lifecycle
      ctx.addAgent(describe)
    }
  })
  const gateway = await createTestGateway({
    plugins: [tinyEnvironments(() => tiny), personas, agents, board, boardAgents, apiBoard, crew],
    pluginConfig: { board: { failure_limit: 1, agents: { leaves: command('leaves'), endless: command('endless'), fails: command('fails'), lost: { command: ['/nowhere/x'] } } } },
    files: { 'etc/svc/svc.toml': '[runtime]\ndriver = "process"\n[slots]\nautostart = false\n' }
  })
  t.teardown(() => gateway.close())
  const call = async (method: string, path: string, body?: unknown): Promise<unknown> => {
    const init = body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
    return await (await gateway.fetch(`/api/board${path}`, { method, ...init })).json()
  }
  if (lifecycle === undefined) throw new Error('the plugins of this test are not all up')
  const add = async (task: object): Promise<string> => (await call('POST', '/tasks', { status: 'ready', ...task }) as { task: Task }).task.id
  const task = async (id: string): Promise<Task> => await call('GET', `/tasks/${id}`) as Task
  /** Once its run is over. */
  const over = async (id: string): Promise<Task> => {
    for (;;) {
      const now = await task(id)
      if (now.status !== 'ready' && now.status !== 'running') return now
      await new Promise(resolve => { setTimeout(resolve, 10) })
    }
  }
  const log = async (id: string): Promise<string> => (await gateway.fetch(`/api/board/tasks/${id}/log`)).text()

  await t.test('an agent that the gateway brought takes tasks as soon as it is installed', async t => {
    const id = await add({ title: 'works', body: 'paint the fence', assignee: 'tiny' })
    t.match(await call('GET', '/profiles'), [{ id: 'leaves' }, { id: 'endless' }, { id: 'fails' }, { id: 'lost' }])
    t.equal((await task(id)).status, 'ready')
    await lifecycle!.install('tiny', {})
    await lifecycle!.settled('tiny')
    const { data_dir: data } = lifecycle!.status('tiny')
    t.match((await call('GET', '/profiles') as unknown[]).at(-1), { id: 'tiny', label: 'Tiny', count: 1 })
    t.match(await over(id), { status: 'done', summary: `did ${id} of default`, runs: [{ state: 'done', profile: 'tiny' }] })
    t.match(await log(id), `wired for svc/agent in ${data}\n`)
    t.match(await readFile(join(data, 'prompt'), 'utf8'), new RegExp(`^You are given task ${id} of the task board 'default'[^]*paint the fence`))
    const elsewhere = await add({ title: 'works', assignee: 'tiny', workspace: folder })
    await over(elsewhere)
    t.match(await log(elsewhere), `in ${folder}\n`)
    for (const workspace of ['here', '/nowhere/at/all']) {
      t.match(await over(await add({ title: 'works', assignee: 'tiny', workspace })), { status: 'blocked', block_reason: new RegExp(workspace) })
    }
  })

  await t.test('an agent that says by its report that it failed has failed, whatever its exit code', async t => {
    const id = await add({ title: 'fails', assignee: 'tiny' })
    t.match(await over(id), { status: 'blocked', runs: [{ state: 'failed', msg: 'its report says so: no model' }] })
  })

  await t.test('an agent whose task is taken back ends with all that it started', async t => {
    const id = await add({ title: 'waits', assignee: 'tiny' })
    const { data_dir: data } = lifecycle!.status('tiny')
    const pid = async (): Promise<number> => Number(await readFile(join(data, 'waiting'), 'utf8').catch(() => '0'))
    while (await pid() === 0) await new Promise(resolve => { setTimeout(resolve, 10) })
    await call('PATCH', `/tasks/${id}`, { status: 'review' })
    for (let now = await task(id); now.runs[0]!.state === 'running'; now = await task(id));
    t.match(await task(id), { status: 'review', runs: [{ state: 'stopped' }] })
    const leader = await pid()
    t.throws(() => process.kill(leader, 0), { code: 'ESRCH' })
  })

  await t.test('what a program leaves in the background holds no task, and what it writes has a bound', async t => {
    t.match(await over(await add({ title: 'x', assignee: 'leaves' })), { status: 'done', summary: 'it is green' })
    const endless = await over(await add({ title: 'x', assignee: 'endless' }))
    t.equal(endless.status, 'done')
    t.ok(endless.summary!.length <= 16 * 1024)
    t.ok((await log(endless.id)).length <= 256 * 1024)
    t.match(await over(await add({ title: 'x', assignee: 'fails' })), { status: 'blocked', block_reason: /\/bin\/sh ended with 3: no paint/ })
    t.match(await over(await add({ title: 'x', assignee: 'lost' })), { status: 'blocked', block_reason: /\/nowhere\/x/ })
  })
})
