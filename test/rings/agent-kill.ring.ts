import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { api, liveHome, startLive, type LiveGateway } from '../e2e/live-gateway.js'
import { tinyProgram } from '../plugins/services/tiny-registry.js'
import { freePort } from '../ports.js'
import { root } from '../repository.js'
import { fakeUpstream, upstreamTable } from '../wire/fake-upstream.js'

t.setTimeout(1_800_000)

async function until (what: string, holds: () => Promise<boolean>): Promise<void> {
  for (const end = performance.now() + 120_000; performance.now() < end;) {
    if (await holds()) return
    await new Promise(resolve => { setTimeout(resolve, 10) })
  }
  throw new Error(`it did not come about: ${what}`)
}

const PLUGIN = 'var/lib/svc/plugins/node_modules/svc-plugin-crew'

/** Two agents whose packages are there at once, by the program and port that stand in its table. */
const CREW = `
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createServiceRef, defineAgent, definePlugin } from 'svc-gateway/plugin'
const [environments, runners] = ['environments', 'runners'].map(name => createServiceRef('api-services.' + name))
const base = { licence: { name: 'MIT', url: null }, description: 'is killed', program: 'tiny', requests: [], install: { npm: { package: 'tiny', version: '1.0.0', bytes: 1000 } } }
let last = 0
export default definePlugin({
  name: 'crew', kind: 'service', apiVersion: 1, provides: [environments, runners],
  register (ctx) {
    ctx.addAgent(defineAgent({
      ...base, id: 'alpha', name: 'Alpha',
      server: { port: PORT, probe: '/', args: world => ['serve', String(world.port)] },
      wiring: ({ dataDir }) => ({ env: { PLACE: dataDir }, files: { 'conf/a': 'a', 'conf/b': 'b' } })
    }))
    ctx.addAgent(defineAgent({ ...base, id: 'beta', name: 'Beta', wiring: () => ({ files: { 'conf/b': 'b' } }) }))
    ctx.provide(runners, { add () {} })
    ctx.provide(environments, {
      async check () {},
      async install ({ npm }, { folder }) {
        const name = 'env-' + process.pid.toString(16) + '-' + ++last
        const bin = join(folder, name, 'node_modules/.bin')
        await mkdir(bin, { recursive: true })
        await writeFile(join(bin, 'tiny'), PROGRAMS[npm.version] ?? PROGRAMS['1.0.0'], { mode: 0o755 })
        return name
      },
      async sweep (folder, but) {
        for (const name of await readdir(folder).catch(() => [])) if (name.startsWith('env-') && name !== but) await rm(join(folder, name), { recursive: true })
      }
    })
  }
})
`

interface Status {
  readonly name: string
  readonly status: string
  readonly version: string | null
  readonly problem: string | null
  readonly unit_active: boolean | null
}

type Order = readonly [method: string, path: string, body?: object]

interface Case {
  readonly what: string
  readonly order: Order
  /** How it is before, and again where the order was never taken. */
  readonly before: readonly string[]
  readonly after: readonly string[]
  /** Takes it back. */
  readonly undo: Order
  /** Steps that it has at least. */
  readonly least: number
}

const install = (name: string): Order => ['POST', '/api/agents/install', { name, switch: true }]
const [one, other] = [['alpha installed 1.0.0'], ['beta installed 1.0.0']]

const cases: readonly Case[] = [
  { what: 'an installation', order: install('alpha'), before: [], after: one, undo: ['DELETE', '/api/agents/alpha'], least: 12 },
  { what: 'an uninstallation', order: ['DELETE', '/api/agents/alpha'], before: one, after: [], undo: install('alpha'), least: 6 },
  { what: 'an upgrade', order: ['POST', '/api/agents/alpha/upgrade', { to: '1.1.0' }], before: one, after: ['alpha installed 1.1.0'], undo: ['POST', '/api/agents/alpha/upgrade', { to: '1.0.0' }], least: 12 },
  { what: 'an upgrade to what does not work', order: ['POST', '/api/agents/alpha/upgrade', { to: '2.0.0' }], before: one, after: ['alpha installed 1.0.0, with a problem'], undo: ['POST', '/api/agents/alpha/reprovision', {}], least: 10 },
  { what: 'a repair', order: ['POST', '/api/agents/alpha/reprovision', { repair: true }], before: one, after: one, undo: ['POST', '/api/agents/alpha/reprovision', {}], least: 12 },
  { what: 'a switch', order: install('beta'), before: one, after: other, undo: install('alpha'), least: 18 }
]

t.test('a gateway that is killed before any step of work on an agent has one outcome at its next start, and nothing left over', async t => {
  const port = await freePort()
  const programs = Object.fromEntries(['1.0.0', '1.1.0', '2.0.0'].map(version => [version, tinyProgram(version)]))
  const home = await liveHome(t, {
    'etc/svc/svc.toml': '[runtime]\ndriver = "process"\n[slots]\nautostart = false\n[plugins]\nallow = ["svc-plugin-crew"]\ndisabled = ["api-services"]\n',
    [`${PLUGIN}/package.json`]: JSON.stringify({
      name: 'svc-plugin-crew', version: '1.0.0', type: 'module', exports: './index.js', svc: { apiVersion: 1, kind: 'service' }
    }),
    [`${PLUGIN}/index.js`]: `${CREW}const PORT = ${port}\nconst PROGRAMS = ${JSON.stringify(programs)}\n`
  })
  const [folder, arm] = [join(home, 'var/lib/svc/plugin-state/agents'), join(home, 'arm')]
  writeFileSync(arm, '0')
  const start = (): Promise<LiveGateway> =>
    startLive(t, home, { NODE_OPTIONS: `--import=${join(root, 'dist/test/rings/support/kill-at.js')}`, SVC_RING_KILL: arm, SVC_RING_KILL_BELOW: folder })
  let gateway = await start()
  const send = async ([method, path, body]: Order): Promise<number> => (await api(gateway, method, path, body)).status

  const list = async (): Promise<readonly Status[]> => ((await api(gateway, 'GET', '/api/agents')).json as { agents: readonly Status[] }).agents
  /** What there is once nothing is under way. */
  const settled = async (): Promise<readonly string[]> => {
    let agents: readonly Status[] = []
    await until('nothing is under way', async () => {
      agents = await list()
      return agents.every(({ status }) => status !== 'installing' && status !== 'removing')
    })
    return agents.map(({ name, status, version, problem }) => `${name} ${status} ${version}${problem === null ? '' : ', with a problem'}`)
  }
  const answers = async (): Promise<string | null> => await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: 'close' } })
    .then(async answer => (await answer.json() as { version: string }).version, () => null)
  /** That there is what is told of, and nothing else. */
  const whole = async (t: Test, told: readonly string[], when: string): Promise<void> => {
    t.strictSame(readdirSync(folder).toSorted(), told.map(line => line.split(' ', 1)[0]), `${when}: one folder for each`)
    for (const name of readdirSync(folder)) {
      t.strictSame(readdirSync(join(folder, name)).filter(file => file.startsWith('env-')).length, 1, `${when}: one environment`)
      t.ok(existsSync(join(folder, name, 'data/.svc-managed')), `${when}: the mark`)
    }
    const version = told.find(line => line.startsWith('alpha'))?.split(' ')[2]?.replace(',', '') ?? null
    await until(`${when}: version ${version} answers`, async () => await answers() === version)
    // what answers may be a server that no gateway looks after
    await until(`${when}: it is this gateway's`, async () => (await list()).every(({ name, unit_active: isActive }) => name !== 'alpha' || isActive === true))
  }

  for (const { what, order, before, after, undo, least } of cases) {
    await t.test(what, async t => {
      if (before.length === 0) await send(['DELETE', '/api/agents/alpha'])
      else await send(install('alpha'))
      t.strictSame(await settled(), before)
      for (let step = 1; ; step++) {
        writeFileSync(arm, String(step))
        let died = false
        const ended = gateway.ended.then(() => { died = true })
        await send(order).catch(() => undefined)
        await Promise.race([ended, settled().catch(() => ended)])
        if (!died) {
          writeFileSync(arm, '0')
          // it may have come to its step right after what was seen
          await list().catch(() => ended)
        }
        if (!died) {
          t.ok(step > least, `${what} has ${step - 1} steps`)
          await send(undo)
          break
        }
        const at = `killed before ${readFileSync(`${arm}.at`, 'utf8')}`
        gateway = await start()
        const told = await settled()
        t.strictSame(told, step === 1 ? before : after, at, { agents: await list() })
        await whole(t, told, at)
        await send(order)
        t.strictSame(await settled(), after, `${at}: the second try`)
        await send(undo)
        t.strictSame(await settled(), before, `${at}: taken back`)
        await whole(t, before, `${at}: taken back`)
      }
    })
  }
  await settled()
  t.equal(await gateway.kill('SIGTERM'), 0, gateway.log())
})

t.test('what an agent spends when its gateway is killed is neither lost nor counted twice', async t => {
  const up = await fakeUpstream(t)
  up.play({ hangAfter: 0, chunks: ['{}'] })
  const home = await liveHome(t, {
    'etc/svc/svc.toml': '[runtime]\ndriver = "process"\n[slots]\nautostart = false\n',
    'etc/svc/upstreams.toml': upstreamTable('up', up.url),
    'etc/svc/prices.toml': '[prices."up/gpt-9"]\nrequest_usd = 0.01\n'
  })
  const budget = '/api/agents/pi/personas/pi/budget'
  let gateway = await startLive(t, home)
  t.match(await api(gateway, 'PUT', budget, { lifetime_usd: 100 }), { status: 200 })
  const rounds = 4
  for (let round = 1; round <= rounds; round++) {
    const charge = { surface: 'search', model: 'web', cost_usd: 1, request_id: `charge-${round}` }
    const asked = { method: 'POST', headers: { 'content-type': 'application/json', 'x-svc-agent': 'pi' }, body: JSON.stringify({ model: 'gpt-9', messages: [] }) }
    const requests = [1, 2].map(() => fetch(`${gateway.url}/v1/chat/completions`, asked).catch(() => null))
    await up.call(2 * round - 1)
    // it may be written down, or not, by the time of the kill
    const charging = api(gateway, 'POST', `${budget}/charge`, charge).catch(() => null)
    if (round % 2 === 0) await charging
    await gateway.kill('SIGKILL')
    await Promise.all([...requests, charging])
    gateway = await startLive(t, home)
    t.match(await api(gateway, 'POST', `${budget}/charge`, charge), { status: 200 }, 'without an answer it is sent again')
    const spent = round * 1.02
    t.match(await api(gateway, 'GET', budget), { json: { spend: { lifetime_usd: spent, today_usd: spent }, remaining: { lifetime_usd: 100 - spent } } })
  }
  const { rows } = (await api(gateway, 'GET', `${budget}/ledger?limit=100`)).json as { rows: ReadonlyArray<{ kind: string, settles: number | null }> }
  const count = (kind: string): number => rows.filter(row => row.kind === kind).length
  t.strictSame(['charge', 'reserve', 'settle'].map(count), [rounds, 2 * rounds, 2 * rounds])
  t.equal(new Set(rows.map(({ settles }) => settles)).size, 2 * rounds + 1, 'each is settled once, at its estimate: the upstream bills it')
  t.equal(await gateway.kill('SIGTERM'), 0, gateway.log())
})
