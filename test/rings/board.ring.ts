import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { access } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { spawnSvc, type SpawnedSvc } from '../cli/support.js'
import { freePort } from '../ports.js'
import { until } from '../wire/wire-gateway.js'
import { openPage } from './support/chromium.js'
import { lacking } from './support/clients.js'

t.setTimeout(850_000)

interface Task {
  readonly id: string
  readonly status: string
}

/** Says that it works, and is done when it may be. Its child shows that nothing of it is left over. */
const agent = `#!/bin/sh
cat > task.json
echo "working at $SVC_TASK"
echo $$ >> started
while [ ! -e may-finish ]; do sleep 0.05; done
echo "it is green"
`

function lines (file: string): readonly string[] {
  try {
    return readFileSync(file, 'utf8').trim().split('\n')
  } catch {
    return []
  }
}

function lives (pid: number): boolean {
  try {
    process.kill(pid, 0)
    // one that nothing has waited for yet is over all the same
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

type Gateway = SpawnedSvc & { readonly url: string }

async function serve (t: Test, home: string, port = 0): Promise<Gateway> {
  const svc = spawnSvc(['serve', '--home', home, '--port', String(port), '--ready-json'])
  t.teardown(async () => {
    svc.child.kill('SIGKILL')
    await svc.finished
  })
  return { ...svc, url: (JSON.parse(await svc.firstLine) as { url: string }).url }
}

async function ask (url: string, method: string, path: string, body?: unknown): Promise<Record<string, unknown>> {
  const init = body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
  return await (await fetch(`${url}/api/board${path}`, { method, ...init })).json() as Record<string, unknown>
}

t.test('a task goes from triage to done by an agent while the gateway is killed twice', async t => {
  const home = t.testdir({})
  const folder = join(home, 'work')
  mkdirSync(folder)
  mkdirSync(join(home, 'etc/svc'), { recursive: true })
  writeFileSync(join(folder, 'agent.sh'), agent)
  const table = `[plugins.config.board.agents.painter]\ncommand = ["/bin/sh", "agent.sh"]\nfolder = ${JSON.stringify(folder)}\n`
  writeFileSync(join(home, 'etc/svc/svc.toml'), table)
  const started = join(folder, 'started')
  let gateway = await serve(t, home)
  const made = await ask(gateway.url, 'POST', '/tasks', { title: 'Paint the fence', assignee: 'painter' })
  const { id, status } = made.task as Task
  t.equal(status, 'triage')
  await ask(gateway.url, 'PATCH', `/tasks/${id}`, { status: 'ready' })
  for (const n of [1, 2]) {
    await until(() => lines(started).length === n, `agent ${n} works`)
    t.match(await ask(gateway.url, 'GET', `/tasks/${id}`), { status: 'running' })
    gateway.child.kill('SIGKILL')
    await gateway.finished
    gateway = await serve(t, home)
  }
  await until(() => lines(started).length === 3, 'the third agent works')
  const [first, second] = lines(started).map(Number)
  t.notOk(lives(first!) || lives(second!), 'nothing is left of those before')
  writeFileSync(join(folder, 'may-finish'), '')
  let task: Task
  do task = await ask(gateway.url, 'GET', `/tasks/${id}`) as unknown as Task
  while (task.status === 'running')
  t.match(task, { status: 'done', summary: 'it is green', runs: [{ state: 'lost' }, { state: 'lost' }, { state: 'done' }] })
  t.match(await (await fetch(`${gateway.url}/api/board/tasks/${id}/log`)).text(), `working at ${id}\nit is green\n`)
  t.match(JSON.parse(readFileSync(join(folder, 'task.json'), 'utf8')), { board: 'default', task: { id, title: 'Paint the fence' } })
  gateway.child.kill('SIGTERM')
  t.equal((await gateway.finished).code, 0)
})

/** Follows the board as a page does: anew from its cursor whenever the socket ends. */
const page = (url: string): string => `<!doctype html><title>board</title><script>
  const seen = []
  let cursor = null
  let frames = 0
  function follow () {
    const socket = new WebSocket('${url.replace('http', 'ws')}/api/board/events' + (cursor === null ? '' : '?since=' + cursor))
    socket.onmessage = ({ data }) => {
      const frame = JSON.parse(data)
      frames++
      if (frame.gap) seen.push('gap')
      seen.push(...frame.events.map(({ id }) => id))
      cursor = frame.cursor
    }
    socket.onclose = () => setTimeout(follow, 20)
  }
  follow()
</script>`

t.test('two pages in a browser follow the board through a crash and a restart of the gateway without losing an event', async t => {
  if (await access('/usr/bin/chromium').then(() => false, () => true)) {
    return void lacking(t, 'there is no /usr/bin/chromium; run: test/engines/install-packages.sh browser')
  }
  let html = ''
  const site = createServer((_request, response) => { response.writeHead(200, { 'content-type': 'text/html' }).end(html) })
  await new Promise<void>(resolve => site.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    site.closeAllConnections()
    site.close()
  })
  const origin = `http://127.0.0.1:${(site.address() as AddressInfo).port}`
  const home = t.testdir({ etc: { svc: { 'svc.toml': `[server]\nallowed_origins = ["${origin}"]\n` } } })
  // one of outgoing connections may be gone by the next start
  const port = await freePort()
  let gateway = await serve(t, home, port)
  const { url } = gateway
  html = page(url)
  const pages = [await openPage(t), await openPage(t)]
  for (const each of pages) {
    await each.goto(origin)
    await each.until('frames > 0', 'the page follows')
  }
  let count = 0
  const work = async (n: number): Promise<void> => {
    for (let i = 0; i < n; i++) await ask(url, 'POST', '/tasks', { title: `task ${++count}` })
  }
  await work(10)
  for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
    await work(5)
    gateway.child.kill(signal)
    await gateway.finished
    gateway = await serve(t, home, port)
    // the pages are not back yet, or just so
    await work(25)
  }
  const all = Array.from({ length: count }, (_, i) => i + 1)
  for (const each of pages) {
    await each.until(`seen.length >= ${count}`, 'it has seen as many')
    t.strictSame(await each.read('seen'), all, 'each event once and in order')
  }
  gateway.child.kill('SIGTERM')
  t.equal((await gateway.finished).code, 0)
})
