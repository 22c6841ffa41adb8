import { readFile } from 'node:fs/promises'
import Docker from 'dockerode'
import t from 'tap'
import { bigramGguf } from '../../plugins/services/demo/bigram-gguf.js'
import { testEngine } from '../kernel/runtime/engines.js'
import { eventually } from '../kernel/runtime/support.js'
import { liveHome, startLive, writeHome, type LiveGateway } from './live-gateway.js'

t.setTimeout(600_000)

interface Row {
  readonly state: string
  readonly replicas_ready: number
  readonly metadata: { readonly adopted: boolean }
  readonly replicas: ReadonlyArray<{
    readonly index: number
    readonly state: string
    readonly engine: string | null
    readonly in_flight: number
  }>
}

interface Answer {
  readonly timings: { readonly cache_n: number, readonly prompt_n: number }
}

type Messages = ReadonlyArray<{ readonly role: string, readonly content: string }>

const row = async ({ url }: LiveGateway, slot: string): Promise<Row> => await (await fetch(`${url}/api/slots/${slot}`)).json() as Row
const load = async ({ url }: LiveGateway, slot: string): Promise<number> =>
  (await fetch(`${url}/api/slots/${slot}/load`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' })).status

const program = `require('node:http').createServer((request, response) => {
  request.resume().on('end', () => response.end(JSON.stringify({ pid: process.pid, choices: [] })))
}).listen(Number(process.argv[1]), '127.0.0.1')`

t.test('kill -9 of the gateway: each of three processes is found at its place, and one that is killed comes back beside the others', async t => {
  const home = await liveHome(t, {
    'etc/svc/svc.toml': '[slots]\nautostart = false\n[runtime]\ndriver = "process"\n',
    'etc/svc/engines/bare.toml': `name = "bare"\napiVersion = 1\nneeds_model = false\nprocess = ["node", "-e", ${JSON.stringify(program)}, "{port}"]\n` +
      '[surfaces.chat]\npath = "/v1/chat/completions"\n',
    'etc/svc/slots/agent.toml': 'type = "llm"\nprovider = "bare"\ndevice = "cpu"\nreplicas = 3\nmin_replicas = 3\n'
  })
  const first = await startLive(t, home)
  t.equal(await load(first, 'agent'), 200)
  const engines = async (gateway: LiveGateway): Promise<Array<string | null>> => (await row(gateway, 'agent')).replicas.map(({ engine }) => engine)
  const had = await engines(first)
  t.equal(new Set(had).size, 3)
  await first.kill('SIGKILL')

  const second = await startLive(t, home)
  await eventually('all are adopted', async () => (await row(second, 'agent')).replicas_ready === 3)
  t.strictSame(await engines(second), had)
  t.equal((await row(second, 'agent')).metadata.adopted, true)
  const answer = await fetch(`${second.url}/v1/chat/completions`, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"model":"agent","messages":[]}'
  })
  const { pid } = await answer.json() as { pid: number }
  process.kill(pid, 'SIGKILL')
  await eventually('another takes its place', async () => {
    const { replicas_ready: ready, replicas } = await row(second, 'agent')
    return ready === 3 && replicas.filter(({ engine }) => !had.includes(engine)).length === 1
  })
  t.equal(await second.kill('SIGTERM'), 0)
})

t.test('real llama-servers in containers: labels lead back to their places, and conversations find their prompts cached', async t => {
  const engine = await testEngine(t, 'docker')
  if (engine === null) return
  const home = await liveHome(t, { 'var/lib/svc/models/demo.gguf': bigramGguf({ cycle: true, contextLength: 32_768 }) })
  const slot = (more: string): string =>
    `device = "cpu"\nidle_timeout_s = 0\nworkers = 4\nreplicas = 2\n${more}[model]\ndefault = "demo"\ncontext_size = 32768\n`
  await writeHome(home, {
    'etc/svc/svc.toml': '[slots]\nautostart = false\n',
    'etc/svc/slots/found.toml': slot(''),
    'etc/svc/slots/spread.toml': slot('prefix_affinity = false\n'),
    'var/lib/svc/registry/registry.toml': `[models.demo]\npath = "${home}/var/lib/svc/models/demo.gguf"\n`
  })
  const docker = new Docker({ socketPath: new URL(engine.host).pathname })
  const env = { DOCKER_HOST: engine.host, SVC_TOOLBOX_IMAGE_CPU: engine.llamaImage }
  const containers = async (): Promise<Docker.ContainerInfo[]> => {
    const instance = (await readFile(`${home}/var/lib/svc/instance-id`, 'utf8')).trim()
    return await docker.listContainers({ all: true, filters: { label: [`svc.instance=${instance}`] } })
  }
  t.teardown(async () => { for (const { Id } of await containers()) await docker.getContainer(Id).remove({ force: true }) })
  const first = await startLive(t, home, env)
  for (const name of ['found', 'spread']) t.equal(await load(first, name), 200)
  const places = async (): Promise<Array<readonly [string | undefined, string]>> =>
    (await containers()).map(({ Id, Labels }) => [Labels['svc.slot'], Id] as const).toSorted((a, b) => String(a[0]).localeCompare(String(b[0])))
  const had = await places()
  t.strictSame(had.map(([name]) => name), ['found', 'found.2', 'spread', 'spread.2'])
  await first.kill('SIGKILL')

  const second = await startLive(t, home, env)
  await eventually('all are adopted', async () => (await row(second, 'found')).replicas_ready + (await row(second, 'spread')).replicas_ready === 4)
  t.strictSame(await places(), had)
  const [found, spread] = [await cachedShare(second, 'found'), await cachedShare(second, 'spread')]
  t.ok(found > 0.5, `with prefix affinity ${Math.round(100 * found)} % of a prompt come from the cache`)
  t.ok(spread < 0.2, `without it ${Math.round(100 * spread)} %`)
  t.equal(await second.kill('SIGTERM'), 0)
})

/**
 * What share of the second prompt of a conversation an engine had cached, by its own count. At its first turn the other
 * engine was free as well, at its second the engine that a request gets without affinity is the one that does not know it.
 */
async function cachedShare (gateway: LiveGateway, model: string): Promise<number> {
  for (let attempt = 1; attempt <= 20; attempt++) {
    const [one, other] = [`${attempt} one `, `${attempt} other `].map(text => [{ role: 'user', content: text.repeat(60) }])
    if (await answerBeside(gateway, model, one!, other!) === null) continue
    const more = { role: 'user', content: 'more' }
    const again = await answerBeside(gateway, model, [...other!, more], [...one!, more])
    if (again !== null) return again.cache_n / (again.cache_n + again.prompt_n)
  }
  throw new Error('no request stayed at work beside another')
}

/** What an answer says of its prompt while an engine is busy with another request; null when that ended too soon. */
async function answerBeside (gateway: LiveGateway, model: string, busy: Messages, messages: Messages): Promise<Answer['timings'] | null> {
  const ask = async (body: object, signal: AbortSignal | null = null): Promise<Response> => await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ model, ...body }), signal
  })
  const inFlight = async (): Promise<number> =>
    (await row(gateway, model)).replicas.reduce((sum, replica) => sum + replica.in_flight, 0)
  const held = new AbortController()
  const stream = await ask({ messages: busy, stream: true, max_tokens: 30_000 }, held.signal)
  await stream.body!.getReader().read()
  const { timings } = await (await ask({ messages, max_tokens: 4 })).json() as Answer
  const isBusy = await inFlight() === 1
  held.abort()
  await eventually('the engines are idle', async () => await inFlight() === 0)
  return isBusy ? timings : null
}
