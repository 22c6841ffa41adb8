import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { oneFile } from '../../one-file.js'
import { reservePorts } from '../../ports.js'
import { eventually } from '../runtime/support.js'
import { processesOf, startDoomed, type DoomedGateway } from './doomed-gateway.js'

// each kill is a gateway of its own
t.setTimeout(600_000)

const program = await oneFile(fileURLToPath(new URL('fixtures/doomed-replica-gateway.js', import.meta.url)))
const NAMES = ['solo', 'set'] as const

interface Row { readonly state: string }

/** Engines that run, each as `of-<model>-<profile> <port>` after its pid. */
async function enginesOf (home: string): Promise<readonly string[]> {
  return (await processesOf(home)).flatMap(({ pid, args }) => /(of-\S+ \d+) \S+$/.exec(args)?.[1]?.replace(/^/, `${pid} `) ?? []).sort()
}

async function slotHome (t: Test): Promise<string> {
  const ports = await reservePorts(t)
  const home = await mkdtemp(join(tmpdir(), 'svc-early-kill-'))
  t.teardown(async () => {
    for (const { pid } of await processesOf(home)) process.kill(pid, 'SIGKILL')
    await rm(home, { recursive: true, force: true, maxRetries: 5 })
  })
  const slot = 'type = "llm"\nprovider = "fake"\ndevice = "cpu"\nworkers = 1\nidle_timeout_s = 0\n'
  const model = '[model]\ndefault = "first"\n'
  const files = {
    'etc/svc/svc.toml': `[runtime]\ndriver = "process"\n[slots]\nautostart = false\n${ports.toml}`,
    'etc/svc/profiles.toml': '[profile.tuned]\nimage = "x"\ndevice_class = "cpu"\n',
    'etc/svc/slots/solo.toml': slot + model,
    'etc/svc/slots/set.toml': `${slot}replicas = 2\nmax_replicas = 2\n${model}`,
    'var/lib/svc/registry/registry.toml': '[models.first]\npath = "/dev/null"\n[models.third]\npath = "/dev/null"\n' +
      '[models.other]\npath = "/dev/null"\n[models.other.defaults]\nprofile = "tuned"\n'
  }
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(home, path)), { recursive: true })
    await writeFile(join(home, path), content)
  }
  return home
}

async function call ({ url }: DoomedGateway, method: string, path: string, body?: object): Promise<Row> {
  const sent = body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
  const response = await fetch(`${url}/api/slots/${path}`, { method, ...sent })
  const json = await response.json() as Row
  if (!response.ok) throw new Error(JSON.stringify(json))
  return json
}

const ready = (gateway: DoomedGateway, name: string): Promise<Row> => eventually(`${name} is adopted`, async () => {
  const row = await call(gateway, 'GET', name)
  return row.state === 'ready' ? row : null
})

t.test('what a gateway has answered is so after a kill in the same moment', async t => {
  const home = await slotHome(t)
  const record = (name: string): string => join(home, 'var/lib/svc/slots', name, 'state.json')
  const replicas = [...NAMES, 'set.2']
  let gateway = await startDoomed(t, program, home)
  /** Engines that it leaves. */
  const killed = async (meanwhile: () => Promise<unknown> = async () => {}): Promise<readonly string[]> => {
    await gateway.kill('SIGKILL')
    const left = await enginesOf(home)
    await meanwhile()
    gateway = await startDoomed(t, program, home)
    return left
  }
  const each = (work: (name: string) => Promise<unknown>): Promise<unknown> => Promise.all(NAMES.map(work))

  await t.test('engines that were started are adopted, whatever is recorded of them', async t => {
    await each(name => call(gateway, 'POST', `${name}/load`, {}))
    await each(name => call(gateway, 'POST', `${name}/restart`, {}))
    // it is written within a second
    const left = await killed(() => Promise.all(replicas.map(name => rm(record(name), { force: true }))))
    await each(async name => { t.match(await ready(gateway, name), { model_id: 'first', config_drift: false }) })
    t.strictSame(await enginesOf(home), left)
    t.equal(left.length, 3)
  })

  await t.test('a model that a slot was given is in force, with its profile', async t => {
    await each(async name => { t.match(await call(gateway, 'POST', `${name}/swap`, { model_id: 'other' }), { model_id: 'other' }) })
    const left = await killed()
    await each(async name => { t.match(await ready(gateway, name), { model_id: 'other', model_default: 'first', config_drift: false }) })
    t.strictSame(await enginesOf(home), left)
    t.ok(left.length === 3 && left.every(engine => engine.includes(' of-other-tuned ')), left.join(', '))
  })

  await t.test('a slot that was given its own model back has it', async t => {
    await each(name => call(gateway, 'POST', `${name}/swap`, { model_id: 'first' }))
    const left = await killed()
    await each(async name => { t.match(await ready(gateway, name), { model_id: 'first', config_drift: false }) })
    t.strictSame(await enginesOf(home), left)
  })

  await t.test('another model in the file of a slot ends what it was given for the one before', async t => {
    await each(name => call(gateway, 'POST', `${name}/swap`, { model_id: 'other' }))
    await each(name => call(gateway, 'PUT', `${name}/config`, { model: { default: 'third' } }))
    await killed()
    await each(async name => {
      t.match(await call(gateway, 'POST', `${name}/load`, {}), { model_id: 'third', config_drift: false })
    })
    t.match(await enginesOf(home), Array.from({ length: 3 }, () => / of-third-none /))
  })

  await t.test('also when it comes to be the same model again', async t => {
    await each(name => call(gateway, 'POST', `${name}/swap`, { model_id: 'other' }))
    for (const model of ['first', 'third']) await each(name => call(gateway, 'PUT', `${name}/config`, { model: { default: model } }))
    await eventually('it is recorded', async () =>
      (await Promise.all(NAMES.map(name => readFile(record(name), 'utf8')))).every(text => /"override": null/.test(text)))
    await killed()
    await each(async name => { t.match(await call(gateway, 'POST', `${name}/load`, {}), { model_id: 'third' }) })
  })
  await gateway.kill('SIGTERM')
  t.strictSame(await enginesOf(home), [])
})
