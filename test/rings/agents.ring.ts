import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { EventEmitter, once } from 'node:events'
import { mkdir, readFile, readdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { api, liveHome, startLive, type LiveGateway } from '../e2e/live-gateway.js'
import { freePort } from '../ports.js'
import { root } from '../repository.js'
import { lacking } from './support/clients.js'
import { LAST_WORDS, scriptedModel, type ScriptedModel } from './support/scripted-model.js'

t.setTimeout(1_800_000)

interface Ended { readonly code: number | string, readonly stdout: string, readonly stderr: string }

interface Agent {
  readonly name: string
  readonly version: string
  /** Arguments that put one question. */
  readonly asks: readonly string[]
  /** Its exit code when the model refuses it. */
  readonly refused: number
  readonly unreached: RegExp
  /** What else it can, once it is installed. */
  readonly also?: (t: Test, gateway: LiveGateway, model: ScriptedModel, around: Around) => Promise<void>
}

type Svc = (...words: readonly string[]) => Promise<Ended>

interface Around { readonly home: string, readonly svc: Svc }

interface Told { readonly type: string, readonly payload: Readonly<Record<string, unknown>> }

const LATE_PROMPT = 'And is that all?'
const PROMPT = 'Which slots are there? Ask the tool slot_list.'

const pi: Agent = {
  name: 'pi',
  version: '0.73.1',
  asks: ['-p'],
  refused: 1,
  // a mirror that has a package has not always all that it stands on yet
  unreached: /ENOTFOUND|ECONNREFUSED|EAI_AGAIN|ETIMEDOUT|ETARGET|notarget|npm error network/,
  also: (...all) => works(...all, 'pi', ['Look at the slots', 'Say what was seen'])
}

const hermes: Agent = {
  name: 'hermes',
  version: '0.19.0',
  asks: ['-z'],
  refused: 0,
  unreached: /No matching distribution|Failed to establish a new connection|NewConnectionError|Temporary failure in name resolution|timed out|no Python/,
  also: async (...all) => {
    await talks(...all)
    await works(...all, 'hermes', ['Look at the slots'])
  }
}

/** What an answer of the scripted model may cost is reserved before it is asked: no request of these costs a dollar. */
const PRICES = '[prices."ring/scripted"]\ninput_usd_per_mtok = 1\noutput_usd_per_mtok = 1\n'

/** As a persona that it is told of while it runs, over the chat of the gateway. */
async function talks (t: Test, gateway: LiveGateway, model: ScriptedModel, { home, svc }: Around): Promise<void> {
  const path = '/api/agents/hermes'
  await api(gateway, 'PUT', `${path}/personas/keeper`, { system_prompt: 'You keep "the ring": # \u{1f4ad}\u2028no more.', tone: 'concise' })
  t.match(await api(gateway, 'POST', `${path}/personas/keeper/activate`, {}), { json: { active: 'keeper', reloaded: true, reload_error: null } })
  const cookie = (await fetch(`${gateway.url}${path}/session/handshake`)).headers.get('set-cookie')!.split(';', 1)[0]!
  const [events, submits] = ['events', 'submit'].map(end => {
    const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}${path}/${end}`, { headers: { cookie } })
    t.teardown(() => socket.terminate())
    return socket
  }) as [WebSocket, WebSocket]
  const told: Told[] = []
  let heard = (): void => {}
  events.on('message', data => {
    told.push(JSON.parse((data as Buffer).toString()) as Told)
    heard()
  })
  const next = async (wanted: string): Promise<Told['payload']> => {
    for (;;) {
      const at = told.findIndex(({ type }) => type === wanted)
      if (at !== -1) return told.splice(0, at + 1).at(-1)!.payload
      await new Promise<void>(resolve => { heard = resolve })
    }
  }
  await Promise.all([once(events, 'open'), once(submits, 'open')])
  const created = await fetch(`${gateway.url}${path}/session/create`, { method: 'POST', headers: { cookie } })
  const { session_id: session } = await created.json() as { session_id: string }
  let asked = ''
  model.asked = async body => { asked += JSON.stringify(JSON.parse(body)) }
  const submit = (method: string, params: object): void => submits.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { session_id: session, ...params } }))
  submit('prompt.submit', { text: PROMPT })
  t.equal((await next('message.complete')).text, LAST_WORDS, 'a page talks to it')
  t.ok(asked.includes(JSON.stringify('You keep "the ring": # \u{1f4ad}').slice(1, -1)), 'and it is who it was told to be')

  model.asked = () => Promise.resolve()
  for (const choice of ['deny', 'approve']) {
    const doomed = join(home, `doomed-${choice}`)
    await mkdir(doomed)
    model.wants = { tool: 'terminal', args: JSON.stringify({ command: `rm -rf ${doomed}` }) }
    submit('prompt.submit', { text: `Remove the folder: ${choice}.` })
    const { id, command } = await next('approval.request')
    t.match(command, doomed, 'its command waits for an operator')
    t.ok(existsSync(doomed))
    submit('approval.respond', { id, choice })
    await next('message.complete')
    t.equal(existsSync(doomed), choice === 'deny', choice)
  }
  // it gives up waiting for an operator, and asks again
  const { json: { data_dir: data } } = await api(gateway, 'GET', path) as { json: { data_dir: string } }
  const config = join(data, 'config.yaml')
  const settings = await readFile(config, 'utf8')
  await writeFile(config, `${settings}approvals:\n  timeout: 2\n`)
  const late = join(home, 'doomed-late')
  await mkdir(late)
  model.wants = { tool: 'terminal', args: JSON.stringify({ command: `rm -rf ${late}` }) }
  submit('prompt.submit', { text: 'Remove the folder, however late.' })
  await next('approval.request')
  await next('message.complete')
  t.ok(existsSync(late), 'what is not approved in its time does not happen')
  // an operator who is in time, on a busy machine too
  await writeFile(config, `${settings}approvals:\n  timeout: 600\n`)
  submit('prompt.submit', { text: 'Once more.' })
  submit('approval.respond', { id: (await next('approval.request')).id, choice: 'once' })
  await next('message.complete')
  t.notOk(existsSync(late), 'and is in the way of no later question')
  await waits(t, gateway, model, svc)
}

/** Its calls of gated tools of the gateway wait in the inbox. */
async function waits (t: Test, gateway: LiveGateway, model: ScriptedModel, svc: Svc): Promise<void> {
  for (const [name, decide] of [
    ['by-prompt', (id: string) => svc('approvals', 'approve', id)],
    ['by-api', async (id: string) => await api(gateway, 'POST', `/api/agent/approvals/${id}/approve`)],
    ['not-by-prompt', (id: string) => svc('approvals', 'deny', id)],
    ['not-by-api', async (id: string) => await api(gateway, 'POST', `/api/agent/approvals/${id}/deny`)]
  ] as const) {
    model.wants = { tool: 'slot_create', args: JSON.stringify({ name, type: 'llm', device: 'cpu' }) }
    t.match(await svc('run', 'hermes', '--', '-z', `Create the slot ${name}.`), { code: 0, stdout: LAST_WORDS })
    const { json } = await api(gateway, 'GET', '/api/agent/approvals')
    t.match(json, { approvals: [{ tool: 'slot_create', args: { name }, client_id: 'hermes', state: 'pending' }] })
    t.match(await svc('approvals', 'list'), { code: 0, stdout: /slot_create +hermes/ })
    t.equal((await api(gateway, 'GET', `/api/slots/${name}`)).status, 404, 'nothing has happened')
    const { approvals: [{ id }] } = json as { approvals: [{ id: string }] }
    t.match(await decide(id), name.includes('prompt') ? { code: 0 } : { status: 200, json: { approval: { state: name.startsWith('not') ? 'denied' : 'executed' } } })
    t.equal((await api(gateway, 'GET', `/api/slots/${name}`)).status, name.startsWith('not') ? 404 : 200, name)
  }
  model.wants = { tool: 'slot_list', args: '{}' }
}

interface Task {
  readonly id: string
  readonly status: string
  readonly summary: string | null
  readonly deps: { readonly parents: readonly string[] }
  readonly runs: ReadonlyArray<{ readonly id: string, readonly state: string, readonly profile: string }>
}

/** A task of the board: it enters triage, is split, and is done part by part; the gateway is killed in the first run of each. */
async function works (
  t: Test, { url, kill }: LiveGateway, model: ScriptedModel, { home }: Around, agent: string, parts: readonly string[]
): Promise<void> {
  const gateways = [{ url, kill }]
  const board = async <T>(method: string, path: string, body?: object): Promise<T> => (await api({ url }, method, `/api/board${path}`, body)).json as T
  await board('PUT', '/orchestration', { auto_decompose: true, orchestrator_profile: 'scripted', default_assignee: agent })
  const split = JSON.stringify({ tasks: parts.map((title, i) => ({ title, body: PROMPT, after: i === 0 ? [] : [0] })) })
  const asked = new EventEmitter()
  const killed = new Set<string>()
  model.asked = async body => {
    if (body.includes('"response_format"')) return split
    const part = parts.find(title => body.includes(`Task: ${title}`))
    if (part === undefined || killed.has(part)) return
    // the agent is left without an answer: its gateway ends
    const over = once(asked, 'killed')
    asked.emit(part)
    await over
  }
  const working = parts.map(part => once(asked, part))
  t.match(await board('POST', '/tasks', { title: 'Which slots are there?' }), { task: { status: 'triage' } })
  for (const [i, part] of parts.entries()) {
    await working[i]
    await gateways.at(-1)!.kill('SIGKILL')
    killed.add(part)
    asked.emit('killed')
    gateways.push(await startLive(t, home, {}, undefined, [], Number(new URL(url).port)))
  }
  let all: readonly Task[]
  do {
    await new Promise(resolve => { setTimeout(resolve, 50) })
    all = Object.values((await board<{ lanes: Record<string, readonly Task[]> }>('GET', '')).lanes).flat()
  } while (!all.every(({ status }) => status === 'done' || status === 'blocked'))
  t.equal(all.length, parts.length + 1)
  const whole = await Promise.all(all.map(({ id }) => board<Task>('GET', `/tasks/${id}`)))
  t.strictSame(whole.map(({ runs }) => runs.map(({ state, profile }) => `${profile} ${state}`)).toSorted((a, b) => a.length - b.length),
    [[`${agent} done`], ...parts.map(() => [`${agent} lost`, `${agent} done`])])
  for (const { status, summary } of whole) t.match({ status, summary }, { status: 'done', summary: LAST_WORDS })
  const lost = whole.flatMap(({ runs }) => runs).filter(({ state }) => state === 'lost')
  const running = await Promise.all((await readdir('/proc')).filter(name => /^\d+$/.test(name)).map(pid => readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '')))
  t.notOk(running.some(environment => lost.some(({ id }) => environment.includes(`SVC_RUN=${id}`))), 'nothing is left of the runs that were lost')
}

async function fromInstallToUninstall (t: Test, { name, version, asks, refused, unreached, also }: Agent): Promise<void> {
  const model = await scriptedModel(t, 'slot_list')
  const home = await liveHome(t, {
    'etc/svc/svc.toml': '[runtime]\ndriver = "process"\n[plugins.config.agents]\nmodel = "scripted"\n',
    'etc/svc/upstreams.toml': `[[upstream]]\nname = "ring"\nkind = "remote"\nurl = "${model.url}/v1"\n`,
    'etc/svc/prices.toml': PRICES
  })
  // the gateways after it have it too, and one of outgoing connections may be gone by then
  const gateway = await startLive(t, home, {}, undefined, [], await freePort())
  const user = join(home, 'user')
  await mkdir(user)
  const svc: Svc = (...words) => new Promise(resolve => {
    // its options go before the words for an agent's program
    const at = words[0] === 'approvals' ? 2 : 1
    const args = [join(root, 'dist/cli/svc.js'), 'agent', ...words.slice(0, at), '--url', gateway.url, ...words.slice(at)]
    const child = execFile(process.execPath, args, { cwd: user, env: { ...process.env, HOME: user } },
      (error, stdout, stderr) => resolve({ code: error === null ? 0 : error.code ?? 1, stdout, stderr }))
    child.stdin!.end()
  })
  const installed = await svc('install', name, '--json')
  if (unreached.test(installed.stderr)) return void lacking(t, `the registry of ${name} is not reached`)
  t.match(installed, { code: 0 })
  if (installed.code !== 0) return
  const status = JSON.parse(installed.stdout) as { version: string, data_dir: string, phases: object }
  t.match(status, { version, wanted_version: version, phases: { probe: { status: 'done', details: { asked: true } } } })

  const budget = `/api/agents/${name}/personas/${name}/budget`
  t.match(await api(gateway, 'PUT', budget, { daily_usd: 1 }), { status: 200 })
  const seen = new Set<unknown>()
  model.asked = async () => {
    const { json } = await api(gateway, 'GET', '/api/requests')
    const { requests } = json as { requests: Array<Record<string, unknown>> }
    for (const { model: wanted, agent } of requests) if (wanted === 'scripted') seen.add(agent)
  }
  const asked = await svc('run', name, '--', ...asks, PROMPT)
  t.match(asked, { code: 0, stdout: LAST_WORDS }, 'it says what the model said last')
  t.match(model.counts, { calls: 1, answers: 1 }, 'which called the tool, and was answered')
  t.strictSame([...seen], [name], 'its requests are listed under its name')
  const activity = await api(gateway, 'GET', `/api/activity?action=mcp.tool.invoked&actor=mcp:${name}`)
  t.match(activity.json, { records: [{ target: 'admin/slot_list', outcome: 'ok' }] }, 'the call is in the audit under its name')

  model.asked = () => Promise.resolve()
  await also?.(t, gateway, model, { home, svc })
  await api(gateway, 'POST', `/api/agents/${name}/personas/${name}/activate`, { reload: false })
  const { json: spent } = await api(gateway, 'GET', budget) as { json: { remaining: { daily_usd: number }, spend: { today_usd: number } } }
  t.ok(spent.spend.today_usd > 0, 'and was charged')
  const rest = { surface: 'chat', model: 'scripted', cost_usd: spent.remaining.daily_usd, request_id: 'rest' }
  t.match(await api(gateway, 'POST', `${budget}/charge`, rest), { status: 200 })
  let again = 0
  // a program that runs has chores of its own
  model.asked = async body => { if (body.includes(LATE_PROMPT)) again++ }
  const capped = await svc('run', name, '--', ...asks, LATE_PROMPT)
  t.equal(capped.code, refused, 'at its cap', capped)
  t.notMatch(capped.stdout, LAST_WORDS)
  t.match(`${capped.stdout}${capped.stderr}`, /the daily cap is \$1/, 'it is told why')
  t.equal(again, 0, 'and the model is not asked')

  t.match(await svc('uninstall', name), { code: 0, stdout: `${name} is gone.\n` })
  t.notOk(existsSync(dirname(status.data_dir)), 'nothing is left on the gateway')
  const left = (await readdir(user, { recursive: true, withFileTypes: true })).filter(entry => !entry.isDirectory())
  t.strictSame(left.map(({ name: file }) => file), [], 'nor of its runs')
}

const only = process.env.SVC_TEST_AGENTS?.split(',')
for (const agent of [pi, hermes].filter(({ name }) => only?.includes(name) !== false)) {
  const name = `${agent.name} is installed by svc agent install, uses a tool of the gateway, is refused at its cap, and leaves nothing`
  t.test(name, t => fromInstallToUninstall(t, agent))
}
