import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { LABEL_SLOT } from '../../../../kernel/contract/provider/engine-runtime.js'
import { createTestGateway, type TestGateway } from '../../../../kernel/testing/index.js'
import { oneFile } from '../../../one-file.js'
import { reservePorts } from '../../../ports.js'
import { someOf } from '../../../whole.js'
import { homeFiles, plugins } from './crash-host.js'
import type { Moment } from './doomed-gateway.js'

// on the file, whose own limit ends the test whatever that says: eleven gateways start, and each waits for engines
t.setTimeout(600_000)

// so that nobody else's engines are met
const { start: base } = await reservePorts()

function newHome (home: string): string {
  for (const [name, content] of Object.entries(homeFiles(base))) {
    mkdirSync(dirname(join(home, name)), { recursive: true })
    writeFileSync(join(home, name), content)
  }
  return home
}

function configured (home: string): Record<string, string> {
  const etc = join(home, 'etc/svc')
  const names = [...readdirSync(etc), ...readdirSync(join(etc, 'slots')).map(name => `slots/${name}`)]
  return Object.fromEntries(names.filter(name => name.endsWith('.toml')).sort().map(name => [name, readFileSync(join(etc, name), 'utf8')]))
}

interface Outcome {
  readonly files: Record<string, string>
  readonly active: string | null
  readonly drift: string
  readonly up: readonly string[]
  /** Engines that are processes, by slot. */
  readonly engines: readonly string[]
  /** Slots that were loaded by this run of the gateway. */
  readonly launched: readonly string[]
}

/** Runs a gateway on a home until what it has to go on with is done. */
async function nextRun (home: string, work: (gateway: TestGateway) => Promise<unknown> = async () => {}): Promise<Outcome> {
  const gateway = await createTestGateway({ home, plugins, stopEngines: true })
  try {
    const { events, runtime } = gateway.gateway.kernel()
    await work(gateway)
    const list = async (): Promise<Pick<Outcome, 'active' | 'drift'>> => await (await gateway.fetch('/api/stacks')).json() as Outcome
    if ((await list()).drift === 'degraded') {
      const told = events.subscribe({ since: 0, type: 'stack.converged' }, new AbortController().signal)
      for await (const { type } of told) if (type === 'stack.converged') break
    }
    const { active, drift } = await list()
    const found = await runtime.list({})
    return {
      files: configured(home),
      active,
      drift,
      up: gateway.slots.names().filter(name => gateway.slots.status(name).state === 'ready'),
      engines: found.filter(({ state }) => state === 'running').map(({ labels }) => labels[LABEL_SLOT]!).sort(),
      launched: events.list({ type: 'slot.state' }).events.filter(({ data }) => data.to === 'starting').map(({ source }) => source)
    }
  } finally {
    await gateway.close()
  }
}

const moments: ReadonlyArray<[string, Moment, 'unchanged' | 'finished']> = [
  ['before the journal is there', { op: 'rename', path: '/..config.journal.' }, 'unchanged'],
  ['before the first file is renamed', { op: 'rename', path: '/.profiles.toml.' }, 'finished'],
  ['when the configuration is written', { event: 'stack.applied' }, 'finished'],
  ['while a slot comes up', { event: 'slot.state', source: 'slot:helper', state: 'starting' }, 'finished'],
  ['before the outcome is written', { op: 'open', path: '/.stacks.json.', nth: 2 }, 'finished']
]

t.test('a gateway that is killed while it applies a stack: the next one finishes, or nothing has changed', async t => {
  const start = configured(newHome(t.testdir()))
  const end = await nextRun(newHome(t.testdir()), async gateway => {
    const applied = await gateway.fetch('/api/stacks/mine/apply', { method: 'POST' })
    t.equal(applied.status, 200)
    const { created, profiles, converged } = await applied.json() as Record<string, { errors?: unknown }>
    t.same({ created, profiles, errors: converged?.errors }, { created: ['helper', 'embed'], profiles: ['fresh'], errors: [] })
  })
  const { active, drift, up, engines } = end
  const all = ['agent', 'embed', 'helper']
  t.same({ active, drift, up, engines }, { active: 'mine', drift: 'clean', up: all, engines: all })
  const program = await oneFile(join(import.meta.dirname, 'doomed-gateway.js'))
  for (const [name, moment, expected] of someOf(moments, 2)) {
    const home = newHome(t.testdir())
    const child = fork(program, [home, JSON.stringify(moment)], { execArgv: [], stdio: ['ignore', 'ignore', 'ignore', 'ipc'] })
    t.teardown(() => child.kill('SIGKILL'))
    const [, signal] = await once(child, 'exit') as [number | null, string | null]
    t.equal(signal, 'SIGKILL', `${name}: it came to that`)
    const outcome = await nextRun(home)
    if (expected === 'unchanged') {
      t.match(outcome, { files: start, active: null, drift: 'none' }, name)
      continue
    }
    t.match(outcome, { files: end.files, active: 'mine', drift: 'clean', up: end.up, engines: end.engines }, name)
    t.notOk(outcome.launched.includes('slot:old'), `${name}: what the stack does not name is not started by itself`)
  }
})
