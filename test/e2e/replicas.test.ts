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
  readonly replicas: ReadonlyArray<{ readonly index: number, readonly state: string, readonly engine: string | null }>
}

interface Answer {
  readonly timings: { readonly cache_n: number, readonly prompt_n: number }
  readonly choices: ReadonlyArray<{ readonly message: { readonly content: string } }>
}

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
  t.comment(`prompt tokens from the cache: ${Math.round(100 * found)} % with prefix affinity, ${Math.round(100 * spread)} % without`)
  t.ok(found > spread, `${found} > ${spread}`)
  t.equal(await second.kill('SIGTERM'), 0)
})

/** Six conversations of six turns side by side: what share of all prompt tokens the engines had cached, by their own count. */
async function cachedShare ({ url }: LiveGateway, model: string): Promise<number> {
  let [cached, all] = [0, 0]
  await Promise.all(Array.from({ length: 6 }, async (_, conversation) => {
    const messages = [{ role: 'system', content: `Conversation ${conversation}, which is about numbers. `.repeat(12) }]
    for (let turn = 0; turn < 6; turn++) {
      messages.push({ role: 'user', content: `${conversation} ${turn} `.repeat(30) })
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ model, messages, max_tokens: 4 + conversation * 3 })
      })
      const { timings, choices } = await response.json() as Answer
      cached += timings.cache_n
      all += timings.cache_n + timings.prompt_n
      messages.push({ role: 'assistant', content: choices[0]!.message.content })
    }
  }))
  return cached / all
}
