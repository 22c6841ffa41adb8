import { once } from 'node:events'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { abortable, core, defineAgent, definePlugin, defineService, type AgentDescriptor, type JobStore } from '../../../kernel/contract/index.js'
import { createTestGateway, type TestGateway } from '../../../kernel/testing/index.js'
import chatRoutes from '../../../plugins/api/agent-chat/index.js'
import apiAgents from '../../../plugins/api/agents/index.js'
import logs from '../../../plugins/api/logs/index.js'
import pluginRoutes from '../../../plugins/api/plugins/index.js'
import services from '../../../plugins/api/services/index.js'
import slots from '../../../plugins/api/slots/index.js'
import llmServer from '../../../plugins/providers/llm-server/index.js'
import personaRoutes from '../../../plugins/api/agent-personas/index.js'
import personas from '../../../plugins/services/agent-personas/index.js'
import agents from '../../../plugins/services/agents/index.js'
import { agentLifecycleRef, type AgentLifecycle, type AgentStatus } from '../../../plugins/services/agents/ref.js'
import { run } from '../../cli/support.js'
import { freePort } from '../../ports.js'
import { pageOn, type Page } from './page-socket.js'
import { tinyEnvironments } from './tiny-environments.js'
import { tinyProgram, tinyRegistry } from './tiny-registry.js'

t.setTimeout(300_000)
const port = await freePort()
const npm = { package: 'tiny-agent', version: '1.0.0', bytes: 10_000 }
const base = { licence: { name: 'MIT', url: null }, program: 'tiny', requests: [] }

const asks: AgentDescriptor = defineAgent({
  ...base,
  id: 'asks',
  name: 'Asks',
  description: 'answers a line',
  install: { npm },
  probe: { args: ['--ask'], line: 'well?', expect: /"ok":true/ },
  skills: 'own/skills',
  wiring: ({ gateway, model, secret }) => ({ env: { GATEWAY: gateway, SECRET: secret }, files: { 'conf/model': model }, args: ['--wired'] })
})
const serves: AgentDescriptor = defineAgent({
  ...base,
  id: 'serves',
  name: 'Serves',
  description: 'has a server',
  install: { npm },
  server: { port, probe: '/', args: world => ['serve', String(world.port)], socket: ({ secret }) => `/ws?token=${secret}` },
  wiring: ({ gateway, dataDir, secret, persona, personas }) =>
    ({ env: { GATEWAY: gateway, PLACE: dataDir, SECRET: secret }, files: { 'conf/who': JSON.stringify({ persona, personas }) } })
})
const plain = defineAgent({ ...base, id: 'plain', name: 'Plain', description: 'is not asked', install: { npm }, wiring: () => ({ files: { 'conf/a': 'a' } }) })
const asService = defineService({
  id: 'serves', name: 'Serves', description: 'has a server', licence: { name: 'MIT', note: null, url: null }, unit: 'svc-agent@serves.service',
  port, verbs: ['start', 'stop', 'restart', 'enable', 'disable'], probe: '/', page: '/', mdns: false, loopback: true
})
const wide = defineAgent({ ...base, id: 'wide', name: 'Wide', description: 'wants much', minContext: 64_000, install: { npm }, wiring: () => ({}) })
const outside = defineAgent({ ...base, id: 'outside', name: 'Outside', description: 'leaves its folder', install: { npm }, wiring: () => ({ files: { '../x': '' } }) })

/** Installs at once, or when it is let; is looked at whether it can be at once, or when it is let. */
const brought = { times: 0, hold: null as Promise<void> | null, check: () => Promise.resolve() }
const environments = tinyEnvironments(tinyProgram, async ({ npm: wanted }, { signal, onMessage }) => {
  brought.times++
  onMessage(`installing ${wanted!.package}@${wanted!.version}`)
  await abortable(brought.hold ?? Promise.resolve(), signal)
}, () => brought.check())

interface Agents extends TestGateway {
  readonly lifecycle: AgentLifecycle
  readonly jobs: JobStore
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests look into answers of every shape
  readonly call: (method: string, path: string, body?: unknown) => Promise<{ readonly status: number, readonly json: any }>
  /** Its status once nothing is under way. */
  readonly ended: (id: string) => Promise<AgentStatus>
  /** What the gateway told of servers that it had not ended. */
  readonly endedByThemselves: readonly string[]
}

async function gatewayOf (
  t: Test, { home, npm: settings }: { readonly home?: string, readonly npm?: object } = {}
): Promise<Agents> {
  let lifecycle: AgentLifecycle | undefined
  let jobs: JobStore | undefined
  const endedByThemselves: string[] = []
  const crew = definePlugin({
    name: 'svc-crew',
    kind: 'service',
    apiVersion: 1,
    requires: { events: core.events, lifecycle: agentLifecycleRef, jobs: core.jobs },
    register (ctx) {
      lifecycle = ctx.services.lifecycle
      jobs = ctx.services.jobs
      const { events } = ctx.services
      const listen = async (): Promise<void> => {
        for await (const { message } of events.subscribe({ type: 'services.ended' }, ctx.signal)) endedByThemselves.push(message)
      }
      listen().catch(() => undefined)
      for (const agent of [asks, plain, serves, wide, outside]) ctx.addAgent(agent)
      ctx.addService(asService)
    }
  })
  const gateway = await createTestGateway({
    ...home === undefined ? {} : { home },
    plugins: [
      ...settings === undefined ? [environments] : [services, logs, slots],
      agents, apiAgents, pluginRoutes, chatRoutes, personas, personaRoutes, llmServer, crew
    ],
    pluginConfig: { 'api-services': { systemctl: '/nonexistent', ...settings } },
    files: {
      'etc/svc/svc.toml': '[runtime]\ndriver = "process"\n[slots]\nautostart = false\n',
      'etc/svc/slots/agent.toml': 'type = "llm"\ndevice = "cpu"\ncontext_size = 8192\n[model]\ndefault = "some-model"\n'
    }
  })
  t.teardown(() => gateway.close())
  const call: Agents['call'] = async (method, path, body) => {
    const init = body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
    const answer = await gateway.fetch(path, { method, ...init })
    const text = await answer.text()
    return { status: answer.status, json: text === '' ? null : JSON.parse(text) }
  }
  const ended = async (id: string): Promise<AgentStatus> => {
    await lifecycle!.settled(id)
    return lifecycle!.status(id)
  }
  return { ...gateway, lifecycle: lifecycle!, jobs: jobs!, call, ended, endedByThemselves }
}

t.test('an agent is installed in phases, wired, asked, upgraded and taken away with nothing left', async t => {
  const gateway = await gatewayOf(t)
  const planned = await gateway.call('POST', '/api/agents/install', { name: 'asks', dry_run: true })
  t.match(planned, { status: 202, json: { status: 'planned', wanted_version: '1.0.0', phases: { packages: { status: 'pending' } } } })
  t.match(await gateway.call('GET', '/api/agents/asks'), { status: 404, json: { error: { code: 'agent.not_installed' } } })

  const begun = await gateway.call('POST', '/api/agents/install', { name: 'asks' })
  t.match(begun, { status: 202, json: { status: 'installing', version: null } })
  t.match(await gateway.call('POST', '/api/agents/serves/restart'), { status: 404 })
  const installed = await gateway.ended('asks')
  const config = join(gateway.home, 'etc/svc/agents/asks.toml')
  t.match(installed, { status: 'installed', version: '1.0.0', wanted_version: '1.0.0', problem: null, unit_active: null, config_path: config })
  t.match((await gateway.call('GET', '/api/agents')).json, { agents: [{ name: 'asks', config_path: config, data_dir: installed.data_dir }], count: 1 })
  t.strictSame(Object.entries(installed.phases).map(([phase, { status }]) => `${phase} ${status}`),
    ['packages done', 'data done', 'wiring done', 'start done', 'probe done'])
  t.equal(await readFile(join(installed.data_dir, 'conf/model'), 'utf8'), 'svc/agent')
  t.match(gateway.jobs.get(installed.job!), { kind: 'agent', target: 'asks', state: 'completed' })
  t.match((await gateway.call('GET', '/api/agents/asks/log')).json, { phases: [{ phase: 'packages', lines: [/running/, /installing tiny-agent@1\.0\.0/] }] })
  t.match(await gateway.call('POST', '/api/agents/install', { name: 'asks' }), { status: 202, json: { status: 'installed', job: installed.job } }, 'it is there')
  t.match(await gateway.call('GET', '/api/agents'), { json: { count: 1, agents: [{ name: 'asks' }] } })

  await gateway.call('POST', '/api/agents/asks/upgrade', { to: '1.1.0' })
  const upgraded = await gateway.ended('asks')
  t.match(upgraded, { status: 'installed', version: '1.1.0', wanted_version: '1.1.0' })
  t.notOk(existsSync(installed.program!), 'the version that was there is gone')
  await gateway.call('POST', '/api/agents/asks/upgrade', { to: '2.0.0' })
  const failed = await gateway.ended('asks')
  t.match(failed, { status: 'installed', version: '1.1.0', wanted_version: '2.0.0', problem: /this version is broken/, program: upgraded.program }, 'it stays as it was')
  t.ok(existsSync(upgraded.program!))
  t.match(gateway.jobs.get(failed.job!), { state: 'failed', error: /broken/ })

  const folder = dirname(installed.data_dir)
  t.strictSame((await gateway.call('DELETE', '/api/agents/asks')).json, { name: 'asks', status: 'uninstalled' })
  t.notOk(existsSync(folder), 'nothing is left')
  t.strictSame((await gateway.call('DELETE', '/api/agents/asks')).json, { name: 'asks', status: 'not_installed' })
  const { records } = (await gateway.call('GET', '/api/agents')).json as { records?: unknown }
  t.equal(records, undefined)
})

t.test('the skills of an agent are listed by what their files say of them', async t => {
  const gateway = await gatewayOf(t)
  t.strictSame((await gateway.call('GET', '/api/agents/skills')).json, { skills: [], count: 0 })
  await gateway.call('POST', '/api/agents/install', { name: 'asks' })
  const { data_dir: data } = await gateway.ended('asks')
  const write = async (path: string, text: string): Promise<void> => {
    const file = join(data, path)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, text)
  }
  const said: ReadonlyArray<readonly [folder: string, text: string, name: string, description: string]> = [
    ['a/plain', '---\nname: tea\ndescription: Makes tea # and no coffee\nmetadata:\n  name: no\n---\nBoil water.', 'tea', 'Makes tea'],
    ['b', '\uFEFF---\r\ndescription: "Says \\"yes\\": always"\r\nname: \'it\'\'s\'\r\n---\r\n', 'it\'s', 'Says "yes": always'],
    ['c/d/e', '---\nname: long\ndescription: >-\n  One line\n  and another.\n\n  A third.\nlicense: MIT\n---', 'long', 'One line and another. A third.'],
    ['f', '# No head', 'f', ''],
    ['g', '---\nname:\ndescription:\n---\n', 'g', ''],
    ['h', `---\ndescription: ${'x'.repeat(3000)}\n---\n`, 'h', 'x'.repeat(1024)]
  ]
  for (const [folder, text] of said) await write(`own/skills/${folder}/SKILL.md`, text)
  for (const path of ['b/inner', '.hidden', 'node_modules/dep', '1/2/3/4/5', '.']) await write(`own/skills/${path}/SKILL.md`, '---\nname: none\n---\n')
  const { skills, count } = (await gateway.call('GET', '/api/agents/skills')).json as { skills: unknown, count: number }
  t.strictSame(skills, said.map(([folder, , name, description]) => ({ agent: 'asks', name, description, path: join(data, 'own/skills', folder, 'SKILL.md') })))
  t.equal(count, said.length)
  for (let i = 0; i < 510; i++) {
    const folder = join(data, 'own/skills/many', String(i))
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'SKILL.md'), '')
  }
  t.equal((await gateway.call('GET', '/api/agents/skills')).json.count, 500, 'what an agent can write without end is listed up to here')
})

t.test('one agent is installed at a time, and its server runs until another takes its place', async t => {
  const gateway = await gatewayOf(t)
  await gateway.call('POST', '/api/agents/install', { name: 'serves' })
  t.match(await gateway.call('POST', '/api/agents/serves/reprovision', {}), { status: 409, json: { error: { code: 'agent.busy' } } })
  const first = await gateway.ended('serves')
  t.match(first, { status: 'installed', unit_active: true })
  const told = async (): Promise<{ pid: number, env: Record<string, string> }> => await (await fetch(`http://127.0.0.1:${port}/`)).json() as never
  const { pid, env } = await told()
  t.match(env, { GATEWAY: gateway.baseUrl, PLACE: first.data_dir, HOME: first.data_dir })
  const who = async (): Promise<unknown> => JSON.parse(await readFile(join(first.data_dir, 'conf/who'), 'utf8')) as unknown
  t.match(await who(), { persona: 'serves', personas: [{ id: 'serves', systemPrompt: /^$/, tone: null }, { id: 'coder' }, { id: 'svc-brain' }] })
  await gateway.call('PUT', '/api/agents/serves/personas/coder', { system_prompt: 'You write code.', tone: 'concise' })
  t.match(await gateway.call('POST', '/api/agents/serves/personas/coder/activate', { reload: false }), { json: { reloaded: false } })
  t.match(await who(), { persona: 'serves' }, 'what is not to be told is not written either')
  t.match(await gateway.call('POST', '/api/agents/serves/personas/coder/activate', {}), { json: { active: 'coder', reloaded: true, reload_error: null } })
  t.match(await who(), { persona: 'coder', personas: [{}, { id: 'coder', systemPrompt: 'You write code.', tone: 'concise' }, {}] }, 'its files come first')
  t.match(await gateway.call('POST', '/api/agents/asks/personas/coder/activate', {}), { json: { reloaded: false, reload_error: null } }, 'one that does not run')
  t.match(await gateway.call('POST', '/api/agents/serves/restart'), {
    status: 200, json: { agent_id: 'serves', unit: 'svc-agent@serves.service', status: 'restarted', detail: 'serves answers', unit_active: true }
  })
  t.not((await told()).pid, pid, 'another process')

  await rm(dirname(first.program!), { recursive: true })
  await gateway.call('POST', '/api/agents/serves/reprovision', {})
  const mended = await gateway.ended('serves')
  t.match(mended, { status: 'installed', phases: { packages: { status: 'done' } } }, 'a program that is lost is brought anew')
  await gateway.call('POST', '/api/agents/serves/bootstrap', { offline: true, skip_phases: ['data'] })
  t.match((await gateway.ended('serves')).phases, { packages: undefined, data: { status: 'skipped' }, probe: { status: 'done' } })
  await gateway.call('POST', '/api/agents/serves/reprovision', { phase: 'wiring' })
  t.strictSame(Object.keys((await gateway.ended('serves')).phases), ['wiring'])

  t.match(await gateway.call('POST', '/api/agents/install', { name: 'asks' }), { status: 409, json: { error: { code: 'agent.already_installed', message: /--switch/ } } })
  await gateway.call('POST', '/api/agents/install', { name: 'asks', switch: true })
  t.match(await gateway.ended('asks'), { status: 'installed', phases: { replace: { status: 'done' } } })
  t.match((await gateway.call('GET', '/api/agents')).json, { count: 1, agents: [{ name: 'asks' }] })
  await t.rejects(fetch(`http://127.0.0.1:${port}/`), 'the server of the other one is gone')
  t.notOk(existsSync(dirname(first.data_dir)))
})

t.test('an agent runs while its plugin is up, and is taken up again with it', async t => {
  const gateway = await gatewayOf(t)
  await gateway.call('POST', '/api/agents/install', { name: 'serves' })
  const { version } = await gateway.ended('serves')
  const answers = async (): Promise<boolean> => await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: 'close' } }).then(({ ok }) => ok, () => false)
  const file = join(gateway.home, 'etc/svc/svc.toml')
  const whole = await readFile(file, 'utf8')
  for (const [text, runs, problem] of [[`${whole}[plugins]\ndisabled = ["svc-crew"]\n`, false, 'the plugin that describes it is not active'], [whole, true, null]] as const) {
    await writeFile(file, text)
    t.equal((await gateway.call('POST', '/api/plugins/reload', {})).status, 200)
    while (await answers() !== runs) await new Promise(resolve => { setTimeout(resolve, 10) })
    await gateway.ended('serves')
    t.match((await gateway.call('GET', '/api/agents')).json, { agents: [{ name: 'serves', status: 'installed', version, problem, unit_active: runs || null }] })
  }
  await gateway.call('POST', '/api/plugins/reload', {})
  t.strictSame(gateway.endedByThemselves, [])
})

t.test('of several orders at one instant one is carried out', async t => {
  const gateway = await gatewayOf(t)
  const together = async (method: string, path: string, body?: unknown): Promise<Awaited<ReturnType<Agents['call']>>[]> =>
    await Promise.all(Array.from({ length: 4 }, () => gateway.call(method, path, body)))
  const before = brought.times
  let release = (): void => undefined
  brought.hold = new Promise(resolve => { release = resolve })
  const orders = [...await together('POST', '/api/agents/install', { name: 'serves' }), await gateway.call('POST', '/api/agents/install', { name: 'plain' })]
  brought.hold = null
  release()
  t.equal((await gateway.ended('serves')).status, 'installed')
  const taken = orders.filter(({ status }) => status === 202)
  t.equal(new Set(taken.map(({ json }) => (json as AgentStatus).job)).size, 1, 'one job')
  for (const { status, json } of orders) if (status !== 202) t.match({ status, json }, { status: 409, json: { error: { code: 'agent.busy' } } })
  t.equal(brought.times, before + 1, 'it was brought once')

  const who = async (): Promise<unknown> => ((await (await fetch(`http://127.0.0.1:${port}/`)).json()) as { pid: number }).pid
  const pid = await who()
  await gateway.call('POST', '/api/agents/serves/upgrade', { to: '1.1.0' })
  t.match(await gateway.ended('serves'), { version: '1.1.0', unit_active: true })
  t.not(await who(), pid, 'another process')
  const restarts = await together('POST', '/api/agents/serves/restart')
  t.strictSame(restarts.map(({ status }) => status).toSorted(), [200, 409, 409, 409], 'a restart is a change like others')
  const removals = await together('DELETE', '/api/agents/serves')
  t.equal(removals.filter(({ json }) => (json as { status?: string }).status === 'uninstalled').length, 1, 'it was taken away once')
  t.strictSame(gateway.endedByThemselves, [], 'none of its servers ended by itself')
})

t.test('an agent that is taken away while it is looked whether it can be changed is not installed', async t => {
  const gateway = await gatewayOf(t)
  t.teardown(() => { brought.check = () => Promise.resolve() })
  for (const [verb, body] of [['upgrade', { to: '1.1.0' }], ['reprovision', { repair: true }]] as const) {
    await gateway.call('POST', '/api/agents/install', { name: 'plain' })
    t.match(await gateway.ended('plain'), { status: 'installed' })
    let release = (): void => undefined
    const asked = new Promise<void>(resolve => {
      brought.check = () => new Promise(go => {
        release = go
        resolve()
      })
    })
    const change = gateway.call('POST', `/api/agents/plain/${verb}`, body)
    await asked
    brought.check = () => Promise.resolve()
    t.match(await gateway.call('DELETE', '/api/agents/plain'), { json: { status: 'uninstalled' } })
    release()
    t.match(await change, { status: 404, json: { error: { code: 'agent.not_installed' } } }, verb)
    t.match((await gateway.call('GET', '/api/agents')).json, { count: 0 })
    t.strictSame(gateway.jobs.list({ kind: 'agent', unfinished: true }), [], 'no job is left')
  }
})

t.test('what cannot work is refused before anything is done', async t => {
  const gateway = await gatewayOf(t)
  const cases = [
    [{ name: 'wide' }, 409, 'agent.window_too_small', /needs a context window of 64000 tokens, and that of svc\/agent has 8192/],
    [{ name: 'codex' }, 409, 'agent.cannot_install', /svc agent run codex/],
    [{ name: 'asks', form: 'python' }, 409, 'agent.cannot_install', /is not available as python/],
    [{ name: 'asks', offline: true }, 409, 'agent.cannot_install', /Asks is not here, and nothing may be downloaded/],
    [{ name: 'plain', skip_phases: ['packages'] }, 409, 'agent.cannot_install', /Plain is not here/],
    [{ name: 'nobody' }, 404, 'agent.unknown', /there is no agent 'nobody'/],
    [{}, 400, 'agent.name_required', /name/]
  ] as const
  const before = brought.times
  for (const [body, status, code, message] of cases) {
    t.match(await gateway.call('POST', '/api/agents/install', body), { status, json: { error: { code, message } } })
  }
  for (const [id, next] of [['asks', /svc agent install asks/], ['codex', /svc agent run codex/]] as const) {
    const answer = await gateway.call('POST', `/api/agents/${id}/upgrade`, {})
    t.match(answer, { status: 404, json: { error: { code: 'agent.not_installed', message: next } } }, 'it names a command that works')
  }
  t.equal(brought.times, before, 'nothing was brought')
  t.match((await gateway.call('GET', '/api/agents')).json, { count: 0 })
  const closed = await gatewayOf(t, { npm: { downloads: false } })
  t.match(await closed.call('POST', '/api/agents/install', { name: 'asks' }), { status: 409, json: { error: { code: 'agent.cannot_install', message: /`downloads` is off/ } } })
})

t.test('a failed installation says why, and is no obstacle to another', async t => {
  const gateway = await gatewayOf(t)
  await gateway.call('POST', '/api/agents/install', { name: 'outside' })
  t.match(await gateway.ended('outside'), { status: 'broken', problem: /has a file outside its folder/, phases: { wiring: { status: 'failed' }, start: { status: 'pending' } } })
  await gateway.call('POST', '/api/agents/install', { name: 'plain' })
  t.match(await gateway.ended('plain'), { status: 'installed' })
  brought.hold = Promise.reject(new Error('no registry answers'))
  brought.hold.catch(() => undefined)
  await gateway.call('POST', '/api/agents/install', { name: 'serves', switch: true })
  t.match(await gateway.ended('serves'), { status: 'broken', problem: 'no registry answers' })
  brought.hold = null
  t.match(await gateway.call('POST', '/api/agents/serves/restart'), {
    status: 502, json: { error: { code: 'agent.restart_failed', message: /Serves is missing/ } }
  })
})

t.test('an agent of which something cannot be deleted leaves that alone, with the command that takes it, and is gone with the next try', async t => {
  const gateway = await gatewayOf(t)
  await gateway.call('POST', '/api/agents/install', { name: 'plain' })
  const { data_dir: data } = await gateway.ended('plain')
  // nothing is closed to root but what the system keeps from it
  const [conf, root] = [join(data, 'conf'), process.getuid!() === 0]
  // on both sides of it, as a folder is read
  for (const path of ['a/b', 'z/y']) await mkdir(join(data, path), { recursive: true })
  for (const path of ['a/b/session', 'z/y/session', 'zz']) await writeFile(join(data, path), '')
  if (root) {
    for (let folder = dirname(data); folder !== tmpdir(); folder = dirname(folder)) await chmod(folder, 0o777)
    for (const path of [data, ...(await readdir(dirname(data), { recursive: true })).map(name => join(dirname(data), name))]) {
      if (!path.startsWith(conf)) await chown(path, 65_534, 65_534)
    }
    process.seteuid!(65_534)
  } else await chmod(conf, 0o500)
  const answer = await gateway.call('DELETE', '/api/agents/plain').finally(() => root && process.seteuid!(0))
  const command = `sudo rm -rf -- ${data}`
  t.match(answer, { status: 500, json: { error: {
    code: 'agent.uninstall_incomplete', message: `): ${command}, then \`svc agent uninstall plain\` again`, details: { agent: 'plain', command }
  } } })
  t.strictSame((await readdir(data)).toSorted(), ['.svc-managed', 'conf'])
  t.strictSame((await readdir(dirname(data))).toSorted(), ['data', 'provision.json'], 'all else is gone')
  t.match(await gateway.call('GET', '/api/agents/plain'), { json: { status: 'removing' } })
  if (!root) await chmod(conf, 0o700)
  t.match(await gateway.call('DELETE', '/api/agents/plain'), { json: { status: 'uninstalled' } })
  t.notOk(existsSync(dirname(data)))
})

t.test('data that was there before is used and not deleted', async t => {
  const gateway = await gatewayOf(t)
  const { data_dir: data } = (await gateway.call('POST', '/api/agents/install', { name: 'plain', dry_run: true })).json as AgentStatus
  await mkdir(data, { recursive: true })
  await writeFile(join(data, 'mine'), 'kept')
  await gateway.call('POST', '/api/agents/install', { name: 'plain' })
  t.match((await gateway.ended('plain')).phases.data, { details: { managed: false } })
  await gateway.call('DELETE', '/api/agents/plain')
  t.strictSame(await readdir(dirname(data)), ['data'])
  t.ok(existsSync(join(data, 'mine')))
})

t.test('a record that another release wrote costs no data: the next installation goes on with it', async t => {
  const home = await mkdtemp(join(tmpdir(), 'svc-agents-home-'))
  t.teardown(() => rm(home, { recursive: true, force: true }))
  const first = await gatewayOf(t, { home })
  await first.call('POST', '/api/agents/install', { name: 'plain' })
  const { data_dir: data } = await first.ended('plain')
  await writeFile(join(data, 'session'), 'kept')
  await first.close()
  await writeFile(join(dirname(data), 'provision.json'), '{"name":"plain","verb":"of a later release"}')
  const next = await gatewayOf(t, { home })
  t.match(await next.call('GET', '/api/agents/plain'), { status: 404, json: { error: { code: 'agent.not_installed' } } })
  await next.call('POST', '/api/agents/install', { name: 'plain' })
  t.match(await next.ended('plain'), { status: 'installed', problem: null })
  t.ok(existsSync(join(data, 'session')))
  t.equal((await readdir(dirname(data))).filter(name => name.startsWith('env-')).length, 1)
  await next.call('DELETE', '/api/agents/plain')
  t.notOk(existsSync(dirname(data)))
  await mkdir(join(data, 'half'), { recursive: true })
  await writeFile(join(data, '.svc-managed'), '')
  await next.close()
  await (await gatewayOf(t, { home })).close()
  t.notOk(existsSync(dirname(data)), 'what has no record is an installation that never began')
})

t.test('a gateway that stops in the middle of an installation goes on with it at its next start', async t => {
  const home = await mkdtemp(join(tmpdir(), 'svc-agents-home-'))
  t.teardown(() => rm(home, { recursive: true, force: true }))
  const first = await gatewayOf(t, { home })
  let release = (): void => undefined
  brought.hold = new Promise(resolve => { release = resolve })
  const { json } = await first.call('POST', '/api/agents/install', { name: 'plain' })
  await first.close()
  brought.hold = null
  release()
  t.match(JSON.parse(await readFile(join(dirname((json as AgentStatus).data_dir), 'provision.json'), 'utf8')), { phases: { packages: { status: 'running' } } })
  const next = await gatewayOf(t, { home })
  const done = await next.ended('plain')
  t.match(done, { status: 'installed', version: '1.0.0' })

  // as a disk leaves it that was full when the end was to be written
  const { id: job } = next.jobs.create({ kind: 'agent', target: 'plain', state: 'running', message: 'install' })
  const { id: unbegun } = next.jobs.create({ kind: 'agent', target: 'plain', state: 'running', message: 'upgrade' })
  await next.close()
  const record = join(dirname(done.data_dir), 'provision.json')
  await writeFile(record, JSON.stringify({ ...JSON.parse(await readFile(record, 'utf8')) as object, job }))
  const last = await gatewayOf(t, { home })
  t.match(last.jobs.get(job), { state: 'completed', progress: 1 }, 'a job that is over is not under way after the next start')
  t.match(last.jobs.get(unbegun), { state: 'failed', error: /before it started/ }, 'nor is one whose work never began')
  await last.close()
})

t.test('an installation that was cut off behind the start of a server goes on with a server of its own', async t => {
  const home = await mkdtemp(join(tmpdir(), 'svc-agents-home-'))
  t.teardown(() => rm(home, { recursive: true, force: true }))
  let gateway = await gatewayOf(t, { home })
  await gateway.call('POST', '/api/agents/install', { name: 'serves' })
  const file = join(dirname((await gateway.ended('serves')).data_dir), 'provision.json')
  const record = JSON.parse(await readFile(file, 'utf8')) as { phases: Record<string, object> }
  const cutOff = { ...record, installed_at: null, completed_at: null }
  for (const probe of [{ ...record.phases.probe!, status: 'running' }, record.phases.probe!]) {
    await gateway.close()
    await t.rejects(fetch(`http://127.0.0.1:${port}/`), 'nothing runs')
    await writeFile(file, JSON.stringify({ ...cutOff, phases: { ...record.phases, probe } }))
    gateway = await gatewayOf(t, { home })
    t.match(await gateway.ended('serves'), { status: 'installed', problem: null, unit_active: true })
  }
})

t.test('an order whose record cannot be written, as on a full disk, has an end, and is taken again once it can', async t => {
  const gateway = await gatewayOf(t)
  t.match((await gateway.call('POST', '/api/agents/install', { name: 'plain', dry_run: true })).json, { status: 'planned', problem: null })
  const { data_dir: data } = (await gateway.call('POST', '/api/agents/install', { name: 'plain', dry_run: true })).json as AgentStatus
  const inTheWay = join(dirname(data), 'provision.json.new')
  await mkdir(inTheWay, { recursive: true })
  t.equal((await gateway.call('POST', '/api/agents/install', { name: 'plain' })).status, 500)
  const jobs = (): ReadonlyArray<{ readonly state: string }> => gateway.jobs.list({ kind: 'agent' })
  t.match(jobs(), [{ state: 'failed', error: /EISDIR/ }])
  t.match(await gateway.call('GET', '/api/agents/plain'), { status: 404 }, 'nothing has begun')

  await rm(inTheWay, { recursive: true })
  let release = (): void => undefined
  brought.hold = new Promise(resolve => { release = resolve })
  t.match(await gateway.call('POST', '/api/agents/install', { name: 'plain' }), { status: 202, json: { status: 'installing' } })
  while (!existsSync(join(dirname(data), 'provision-logs/packages.log'))) await new Promise(resolve => { setImmediate(resolve) })
  await mkdir(inTheWay)
  brought.hold = null
  release()
  t.match(await gateway.ended('plain'), { status: 'broken', problem: /interrupted/ }, 'in the middle of it')
  t.equal(jobs()[0]!.state, 'failed')
  await rm(inTheWay, { recursive: true })
  t.match(await gateway.call('POST', '/api/agents/install', { name: 'plain' }), { status: 202, json: { status: 'installing', problem: null } })
  t.match(await gateway.ended('plain'), { status: 'installed' })
  t.strictSame(jobs().map(({ state }) => state), ['completed', 'failed', 'failed'])
})

t.test('an agent that is taken away while the gateway starts it leaves nothing', async t => {
  const home = await mkdtemp(join(tmpdir(), 'svc-agents-home-'))
  t.teardown(() => rm(home, { recursive: true, force: true }))
  const first = await gatewayOf(t, { home })
  await first.call('POST', '/api/agents/install', { name: 'serves' })
  const { data_dir: data } = await first.ended('serves')
  await first.close()
  const next = await gatewayOf(t, { home })
  t.match(await next.call('DELETE', '/api/agents/serves'), { status: 200, json: { status: 'uninstalled' } }, 'a start is no reason to refuse it')
  await next.lifecycle.settled('serves')
  t.notOk(existsSync(dirname(data)))
  await t.rejects(fetch(`http://127.0.0.1:${port}/`), 'nor its server')
})

t.test('npm brings the version that was asked for, or the installation fails; an agent with a server is a service as well', async t => {
  const cache = await mkdtemp(join(tmpdir(), 'svc-agents-npm-'))
  t.teardown(() => rm(cache, { recursive: true, force: true }))
  const registry = await tinyRegistry(t)
  const gateway = await gatewayOf(t, { npm: { installer_env: { NPM_CONFIG_REGISTRY: registry.url, NPM_CONFIG_CACHE: cache } } })
  const row = async (): Promise<unknown> => (await gateway.call('GET', '/api/services')).json.services[0]
  const act = (action: string): ReturnType<Agents['call']> => gateway.call('POST', '/api/services/serves/action', { action })
  t.match(await row(), { id: 'serves', managed: false, runs_as: null, up: false, hints: ['`svc agent install serves` brings it'] })
  t.match(await act('start'), { status: 200, json: { ok: false, problem: 'failed', message: /no unit svc-agent@serves\.service; `svc agent install serves` brings it/ } })
  await gateway.call('POST', '/api/agents/install', { name: 'serves' })
  t.match(await gateway.ended('serves'), { status: 'installed', version: '1.0.0', problem: null })
  await gateway.call('POST', '/api/agents/serves/upgrade', { to: '3.0.0' })
  t.match(await gateway.ended('serves'), { version: '1.0.0', problem: /2\.9\.0 was installed instead of 3\.0\.0/ })
  t.strictSame(registry.asked.filter(path => path.endsWith('.tgz')).length, 2)

  registry.versions = ['1.0.0', '1.0.1', '3.0.0']
  await gateway.call('POST', '/api/agents/serves/upgrade', { to: '1.0.1' })
  t.match(await gateway.ended('serves'), { version: '1.0.1', problem: null }, 'newer than what npm remembers of the registry')
  await gateway.call('POST', '/api/agents/serves/upgrade', { to: '9.0.0' })
  t.match(await gateway.ended('serves'), { version: '1.0.1', problem: /^npm install ended with 1: .*(ETARGET|No matching version)/ })
  const isUp = { managed: true, runs_as: 'agent', up: true, wired: true, installation: { state: 'installed', version: '1.0.1' }, unit_state: { active_state: 'active', unit_file_state: 'enabled' } }
  t.match(await row(), isUp)
  t.match(await act('stop'), { json: { ok: true, active: false, message: /until it is started, or the gateway is/ } })
  t.match(await row(), { up: false, runs_as: 'agent', unit_state: { active_state: 'inactive' } })
  for (const verb of ['start', 'restart', 'enable']) t.match(await act(verb), { json: { ok: true, active: true } }, verb)
  t.match(await act('disable'), { json: { ok: false, active: true, message: /svc agent uninstall serves/ } })
  t.match(await row(), isUp)
  t.match(await gateway.call('GET', '/api/logs?unit=svc-agent@serves.service'), { status: 200, json: { count: 0 } })
  await gateway.call('DELETE', '/api/agents/serves')
  await gateway.lifecycle.settled('serves')
  t.match(await row(), { up: false, runs_as: null, installation: { state: 'absent' }, unit_state: null })
})

t.test('svc agent install, status, log, upgrade and uninstall do it at the prompt', async t => {
  const gateway = await gatewayOf(t)
  const user = await mkdtemp(join(tmpdir(), 'svc-agents-user-'))
  t.teardown(() => rm(user, { recursive: true, force: true }))
  const svc = (...words: readonly string[]): ReturnType<typeof run> =>
    run(['agent', ...words, '--url', gateway.baseUrl], { env: { HOME: user, PATH: process.env.PATH ?? '' }, cwd: user })
  t.match(await svc('install', 'plain', '--dry-run'), { code: 0, stdout: /^plain {2}is planned \(npm\)[^]* {2}packages: pending\n/ })
  t.match(await svc('install', 'plain'), { code: 0, stdout: /^plain 1\.0\.0 is installed \(npm\)[^]* {2}packages: done\n {2}data: done\n/ })
  t.match(await svc('status', 'plain'), { code: 0, stdout: /is installed/ })
  t.match(await svc('list'), { code: 0, stdout: /plain +tiny, not on PATH +1\.0\.0 +is not asked/ })
  t.match(await svc('log', 'plain', '--phase', 'packages'), { code: 0, stdout: /^packages: \S+ running\npackages: \S+ installing tiny-agent@1\.0\.0\n/ })
  t.match(await svc('install', 'wide', '--switch'), { code: 1, stderr: /needs a context window of 64000 tokens/ })
  t.match(await svc('install', 'asks'), { code: 1, stderr: /plain is installed.*--switch/s })
  t.match(await svc('reprovision', 'plain', '--phase', 'wiring'), { code: 0, stdout: /wiring: done/ })
  t.match(await svc('bootstrap', 'plain', '--offline'), { code: 0, stdout: /probe: done/ })
  t.match(await svc('install', 'outside', '--offline'), { code: 1 })
  t.match(await svc('bootstrap', 'plain', '--dry-run', '--json'), { code: 0, stdout: /"status": "planned"/ })
  t.match(await svc('bootstrap', 'plain', '--skip-phase', 'probe', '--json'), { code: 0, stdout: /"probe": \{\s+"status": "skipped"/ })
  t.match(await svc('reprovision', 'plain', '--repair'), { code: 0, stdout: /packages: done[^]*probe: done/ })
  t.match(JSON.parse((await svc('reprovision', 'plain', '--phase', 'probe', '--json')).stdout), { name: 'plain', phases: { probe: { status: 'done' } } })
  t.ok(Array.isArray((JSON.parse((await svc('log', 'plain', '--json')).stdout) as { phases: unknown }).phases))
  t.match(await svc('install', 'asks', '--switch', '--dry-run', '--skip-phase', 'start', '--skip-phase', 'probe'), { code: 0, stdout: /start: skipped[^]*probe: skipped/ })
  t.match(await svc('install', 'asks', '--switch', '--json'), { code: 0, stdout: /"status": "installed"/ })
  t.match(await svc('upgrade', 'asks', '--to', '2.0.0'), { code: 1, stderr: /this version is broken/ })
  await mkdir(join(user, '.local/state/svc/agents/asks'), { recursive: true })
  t.match(await svc('uninstall', 'asks'), { code: 0, stdout: 'asks is gone.\n' })
  t.match(await svc('uninstall', 'asks'), { code: 0, stdout: 'asks was not installed.\n' })
  t.match(JSON.parse((await svc('uninstall', 'asks', '--json')).stdout), { name: 'asks', status: 'not_installed' })
  t.strictSame(await readdir(join(user, '.local/state/svc/agents')), [], 'nothing is left of its runs')
})

t.test('pages talk to an agent over one socket to it; approvals get ids, and its end is a close code', async t => {
  const gateway = await gatewayOf(t)
  const at = `${gateway.baseUrl}/api/agents/serves`
  t.match(await gateway.call('GET', '/api/agents/serves/session/handshake'), { status: 404, json: { error: { code: 'agent.not_installed' } } })
  await gateway.call('POST', '/api/agents/install', { name: 'serves' })
  await gateway.ended('serves')
  t.match(await gateway.call('POST', '/api/agents/serves/session/create'), { status: 403, json: { error: { code: 'agent.session_required' } } })

  const handshake = await fetch(`${at}/session/handshake`)
  const given = handshake.headers.get('set-cookie')!
  t.match(given, /^svc_session=[0-9a-f]{32}\.\d+\.[\w-]{43}; Path=\/api\/agents\/serves; Max-Age=86400; HttpOnly; SameSite=Strict$/)
  t.strictSame(await handshake.json(), { agent_id: 'serves', ok: true })
  const cookie = given.split(';', 1)[0]!
  t.equal((await fetch(`${at}/session/handshake`, { headers: { cookie } })).headers.get('set-cookie'), null, 'it is known by it then')
  const forged = `${cookie.slice(0, -1)}${cookie.endsWith('A') ? 'B' : 'A'}`
  for (const wrong of ['', 'svc_session=x', cookie.replace('=', '=0'), forged.replace(/\.\d+\./, '.99999999999.')]) {
    t.equal(await pageOn(t, `${at}/events`, { cookie: wrong }).closed, 4403, wrong)
  }
  const elsewhere = pageOn(t, `${at}/submit`, { cookie, origin: 'http://evil.example' })
  const [, { statusCode }] = await once(elsewhere.socket, 'unexpected-response') as [unknown, { statusCode: number }]
  t.equal(statusCode, 403, 'nor is the page of another site let in')

  const ask = async (method: string, path: string, body?: object): Promise<{ status: number, json: unknown }> => {
    const answer = await fetch(`${at}/session/${path}`, {
      method, headers: { cookie, 'content-type': 'application/json' }, ...body === undefined ? {} : { body: JSON.stringify(body) }
    })
    return { status: answer.status, json: await answer.json() }
  }
  const [events, submits] = [pageOn(t, `${at}/events`, { cookie }), pageOn(t, `${at}/submit`, { cookie })]
  await Promise.all([once(events.socket, 'open'), once(submits.socket, 'open')])
  t.match(await ask('POST', 'create'), { status: 200, json: { session_id: '0123abcd', stored_session_id: 'kept' } })
  t.match(await ask('POST', 'resume', { session_id: 'kept' }), { status: 200, json: { session_id: '0123abcd' } })
  t.match(await ask('POST', 'resume', { session_id: 'gone' }), { status: 502, json: { error: { code: 'agent.refused', message: /refused session\.resume: not found/, details: { code: 4001 } } } })
  t.match(await ask('POST', 'resume', { session_id: 'odd' }), { status: 502, json: { error: { message: /refused session\.resume: {"toString":1}/ } } })
  t.match(await ask('GET', 'history?session_id=0123abcd'), { json: { count: 1, messages: [{ content: 'hello' }] } })

  let last = 0
  const told = async (method: string, params: object): Promise<Record<string, unknown>> => {
    const id = ++last
    submits.send({ jsonrpc: '2.0', id, method, params })
    return await submits.next(message => message.id === id)
  }
  const session = { session_id: '0123abcd' }
  t.match(await told('prompt.submit', { ...session, text: 'hello' }), { result: { status: 'streaming' } })
  t.match(await events.next(({ type }) => type === 'thinking.delta'), { payload: { text: /^$/ } }, 'the last thought')
  t.strictSame(await events.next(() => true), { type: 'message.delta', ...session, payload: { text: 'one' } }, 'three pieces are one')
  t.match(await events.next(() => true), { type: 'message.complete' }, 'in their order')

  const isAsked = ({ type }: Record<string, unknown>): boolean => type === 'approval.request'
  await told('prompt.submit', { ...session, text: 'ask' })
  const { payload } = await events.next(isAsked) as { payload: { id: string } }
  t.match(payload, { id: /^[0-9a-f-]{36}$/, command: 'rm -r x' })
  t.strictSame((await pageOn(t, `${at}/events`, { cookie }).next(isAsked)).payload, payload, 'a page that comes later is asked as well')
  t.match(await told('approval.respond', { id: 'another', choice: 'approve' }), { error: { code: -32_001 } })
  t.match(await told('approval.respond', { id: payload.id, choice: 'perhaps' }), { error: { code: -32_602 } })
  t.match(await told('approval.respond', { id: payload.id, choice: 'approve' }), { result: { resolved: 1 } })
  t.match(await events.next(({ type }) => type === 'message.complete'), { payload: { text: JSON.stringify({ ...session, choice: 'once' }) } })
  t.match(await told('approval.respond', { id: payload.id, choice: 'deny' }), { error: { code: -32_001 } }, 'once')
  await told('prompt.submit', { ...session, text: 'ask late' })
  const [dropped, asked] = [await events.next(isAsked), await events.next(isAsked)] as Array<{ payload: { id: string } }>
  t.match(asked, { payload: { command: 'rm -r 2' } })
  t.match(await told('approval.respond', { id: dropped!.payload.id, choice: 'approve' }), { error: { code: -32_001 } }, 'what it no longer waits for')
  t.match(await told('approval.respond', { id: asked!.payload.id, choice: 'deny' }), { result: { resolved: 1 } }, 'is in the way of nothing')
  await events.next(({ type }) => type === 'message.complete')
  await told('prompt.submit', { ...session, text: 'unclear' })
  t.match(await events.next(({ type }) => type === 'clarify.request'), { payload: { question: 'Which?', request_id: 'q1' } })
  t.match(await told('clarify.respond', { ...session, request_id: 'q1', answer: 'a' }), { result: { status: 'ok' } })
  t.match(await told('config.set', { ...session, key: 'model', value: 'x' }), { error: { code: -32_601 } }, 'nothing else is passed on')
  submits.send('{')
  t.match(await submits.next(() => true), { id: null, error: { code: -32_700 } })

  const another = async (): Promise<string> => (await fetch(`${at}/session/handshake`)).headers.get('set-cookie')!.split(';', 1)[0]!
  const pagesOf = async (browser: string): Promise<readonly [Page, Page]> => {
    const pages = [pageOn(t, `${at}/events`, { cookie: browser }), pageOn(t, `${at}/submit`, { cookie: browser })] as const
    await Promise.all(pages.map(({ socket }) => once(socket, 'open')))
    return pages
  }
  const asksMost = await pagesOf(await another())
  asksMost[1].send({ jsonrpc: '2.0', id: 0, method: 'prompt.submit', params: { ...session, text: 'ask most' } })
  const open: Array<Record<string, unknown>> = []
  while (open.length < 256) open.push((await asksMost[0].next(isAsked)).payload as Record<string, unknown>)
  asksMost[1].send({ jsonrpc: '2.0', id: 1, method: 'approval.respond', params: { id: open[0]!.id, choice: 'deny' } })
  t.match(await asksMost[1].next(({ id }) => id === 1), { result: { resolved: 1 } }, '256 questions are kept, and the first is answered first')
  for (const text of ['ask on', 'ask much', 'deep']) {
    const pages = await pagesOf(await another())
    pages[1].send({ jsonrpc: '2.0', id: 0, method: 'prompt.submit', params: { ...session, text } })
    const [events, submits] = await Promise.all(pages.map(({ closed }) => closed))
    t.equal(submits, 1011, `an agent that sends what cannot be kept: ${text}`)
    // a page that is too slow for so much may be let go before
    t.ok(events === 1011 || (text === 'ask much' && events === 1013), `its events end with ${events}`)
  }
  t.match(await told('prompt.submit', { ...session, text: 'hello' }), { result: { status: 'streaming' } }, 'others go on')

  const begun: Array<Record<string, unknown>> = []
  for (let i = 0; i < 64; i++) {
    const answer = await fetch(`${at}/session/create`, { method: 'POST', headers: { cookie: await another() } })
    begun.push({ status: answer.status, ...await answer.json() as object })
  }
  t.strictSame([...new Set(begun.map(({ status }) => status))], [200, 503])
  t.match(begun.at(-1), { error: { code: 'agent.chats_full', message: /^64 chats with agents are open/ } })
  t.match(await told('prompt.submit', { ...session, text: 'hello' }), { result: { status: 'streaming' } }, 'those that are open go on')

  submits.send({ jsonrpc: '2.0', id: 0, method: 'prompt.submit', params: { ...session, text: 'die' } })
  t.strictSame(await Promise.all([events.closed, submits.closed]), [1011, 1011])

  await gateway.call('DELETE', '/api/agents/serves')
  await gateway.call('POST', '/api/agents/install', { name: 'plain' })
  await gateway.ended('plain')
  const other = (await fetch(`${gateway.baseUrl}/api/agents/plain/session/handshake`)).headers.get('set-cookie')!.split(';', 1)[0]!
  const create = (with_: string): Promise<Response> => fetch(`${gateway.baseUrl}/api/agents/plain/session/create`, { method: 'POST', headers: { cookie: with_ } })
  t.match(await (await create(other)).json(), { error: { code: 'agent.chat_unavailable' } })
  t.equal((await create(cookie)).status, 403, 'a cookie is for one agent')
})
