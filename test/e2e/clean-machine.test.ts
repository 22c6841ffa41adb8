import { readFile } from 'node:fs/promises'
import Docker from 'dockerode'
import OpenAI from 'openai'
import t, { type Test } from 'tap'
import { bigramGguf } from '../../plugins/services/demo/bigram-gguf.js'
import { demoSentence } from '../../plugins/services/demo/sentence.js'
import { spawnSvc, type SpawnedSvc } from '../cli/support.js'
import { testEngine } from '../kernel/runtime/engines.js'
import { FakeHub } from '../plugins/services/hub/fake-hub.js'
import { reservePorts } from '../ports.js'
import { liveHome, startLive, type LiveGateway } from './live-gateway.js'

t.setTimeout(600_000)

const model = bigramGguf()
const FILE = 'tiny-f32.gguf'

/** What an operator has: a machine with a container engine, a hub, and a home with nothing in it but where the hub is. */
interface CleanMachine {
  readonly home: string
  readonly hub: FakeHub
  readonly setup: (...args: readonly string[]) => SpawnedSvc
  readonly serve: () => Promise<LiveGateway>
}

async function cleanMachine (t: Test): Promise<CleanMachine | null> {
  const engine = await testEngine(t, 'docker')
  if (engine === null) return null
  const hub = await FakeHub.start(t)
  hub.add('org/tiny', { files: { [FILE]: model } })
  const tier = (name: string): string => JSON.stringify({
    name,
    slots: [{ capability: 'chat.primary', model_id: 'tiny' }],
    models: [{ id: 'tiny', hf_repo: 'org/tiny', hf_file: FILE, size_gb: 0.005, context_length: 4096 }]
  })
  const home = await liveHome(t, {
    // other tests have the usual ports
    'etc/svc/svc.toml': `[slots]\n${(await reservePorts()).toml}[plugins.config.pull]\nretry_base_s = 0.05\n`,
    'etc/svc/api.env': `HF_ENDPOINT="${hub.url}"\nno_proxy="*"\n`,
    ...Object.fromEntries(['Lite', 'Default', 'Pro', 'Max'].map(name => [`var/lib/svc/models/collections/omni/${name.toLowerCase()}.json`, tier(name)]))
  })
  const env = { DOCKER_HOST: engine.host, SVC_TOOLBOX_IMAGE_CPU: engine.llamaImage }
  const docker = new Docker({ socketPath: new URL(engine.host).pathname })
  t.teardown(async () => {
    const instance = (await readFile(`${home}/var/lib/svc/instance-id`, 'utf8')).trim()
    const containers = await docker.listContainers({ all: true, filters: { label: [`svc.instance=${instance}`] } })
    for (const { Id } of containers) await docker.getContainer(Id).remove({ force: true })
  })
  return {
    home,
    hub,
    setup: (...args) => {
      const svc = spawnSvc(['setup', '--auto', '--no-extensions', ...args], { ...env, COLUMNS: '120' })
      t.teardown(() => svc.child.kill('SIGKILL'))
      return svc
    },
    serve: () => startLive(t, home, env)
  }
}

async function answer (url: string): Promise<string | null | undefined> {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', timeout: 120_000 })
  const { choices } = await client.chat.completions.create({ model: 'svc/agent', messages: [{ role: 'user', content: 'Hello' }] })
  return choices[0]?.message.content
}

t.test('a clean machine with a gateway that runs: one command, then the model answers', async t => {
  const machine = await cleanMachine(t)
  if (machine === null) return
  const gateway = await machine.serve()
  const { code, stdout, stderr } = await machine.setup('--url', gateway.url, '--json').finished
  t.equal(code, 0, stderr)
  t.match(JSON.parse(stdout), {
    in_process: false,
    slots: [{ slot: 'agent', model_id: 'tiny', created: true, device: 'cpu', profile: 'cpu-llm', error: null }],
    pulls: [{ model_id: 'tiny', state: 'completed', bytes_downloaded: model.length, sha256: machine.hub.sha256('org/tiny', FILE) }]
  })
  t.equal(await answer(gateway.url), demoSentence)
  const again = await machine.setup('--url', gateway.url).finished
  t.match(again, { code: 0, stdout: /already exists; none was created/ }, 'once more changes nothing')
  t.equal(await gateway.kill('SIGTERM'), 0)
})

t.test('a clean machine without one: cut, left, taken up, cut again, then started', async t => {
  const machine = await cleanMachine(t)
  if (machine === null) return
  const { hub, home } = machine
  const slot = (): Promise<string> => readFile(`${home}/etc/svc/slots/agent.toml`, 'utf8')
  hub.fail('cdn', FILE, { kind: 'cut', after: 400_000 }, 1, 'GET')
  hub.fail('cdn', FILE, { kind: 'stall', after: 1_900_000 }, 1, 'GET')
  const first = machine.setup('--home', home)
  await hub.reaches(FILE, 2_300_000)
  first.child.kill('SIGINT')
  const left = await first.finished
  t.equal(left.code, 130)
  t.match(left.stderr, /No gateway runs[^]*Partial downloads are kept/)
  t.match(await slot(), /enabled = false[^]*pending_model = "tiny"/)

  hub.fail('cdn', FILE, { kind: 'cut', after: 400_000 }, 1, 'GET')
  const { code, stdout, stderr } = await machine.setup('--home', home).finished
  t.equal(code, 0, stderr)
  t.match(stdout, /agent +tiny +cpu [^]*Start it: npx svc serve( --home \S+)?,\s+then:\s+npx svc chat --slot agent/)
  t.match(await slot(), /enabled = true[^]*default = "tiny"/)
  const asked = hub.requests('cdn', FILE, 'GET').map(({ headers }) => Number(/^bytes=(\d+)-$/.exec(headers.range ?? 'bytes=0-')?.[1]))
  t.equal(asked.length, 4, `from ${asked.join(', ')}`)
  t.ok(hub.served(FILE) < model.length + 2_000_000, `${hub.served(FILE)} bytes for ${model.length}: what had come was kept`)

  const gateway = await machine.serve()
  t.equal(await answer(gateway.url), demoSentence)
  t.equal(await gateway.kill('SIGTERM'), 0)
})
