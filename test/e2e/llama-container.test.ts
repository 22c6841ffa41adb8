import { readFile, rm, writeFile } from 'node:fs/promises'
import Docker from 'dockerode'
import t, { type Test } from 'tap'
import { bigramGguf } from '../../plugins/services/demo/bigram-gguf.js'
import { demoSentence } from '../../plugins/services/demo/sentence.js'
import { testEngine, type TestEngine } from '../kernel/runtime/engines.js'
import { until } from '../wire/wire-gateway.js'
import { pause } from '../paused.js'
import { freePort } from '../ports.js'
import { chat, liveHome, readStream, startLive, writeHome, type LiveGateway } from './live-gateway.js'

t.setTimeout(600_000)

interface Setup {
  readonly engine: TestEngine
  readonly docker: Docker
  readonly home: string
  readonly start: () => Promise<LiveGateway>
  /** Containers of this home, running or not. */
  readonly containers: () => Promise<Docker.ContainerInfo[]>
  /** The label that they carry: other tests have containers of their own at the same time. */
  readonly ours: () => Promise<string>
}

/** Slot `agent` says the sentence; slot `endless` never stops talking. Both run llama.cpp's server in a container. */
async function setup (t: Test): Promise<Setup | null> {
  const engine = await testEngine(t, 'docker')
  if (engine === null) return null
  const home = await liveHome(t, {
    'var/lib/svc/models/demo.gguf': bigramGguf(),
    'var/lib/svc/models/endless.gguf': bigramGguf({ cycle: true, contextLength: 32_768 })
  })
  const models = `${home}/var/lib/svc/models`
  const [one, two] = [await freePort(), await freePort()]
  const slot = (model: string, port: number, extra = ''): string =>
    `device = "cpu"\nport = ${port}\nidle_timeout_s = 0\n[model]\ndefault = "${model}"\ncontext_size = 32768\n${extra}`
  await writeHome(home, {
    // what would wait for a stream to end never comes back
    'etc/svc/svc.toml': '[slots]\nautostart = false\nunresponsive_s = 8\ndrain_timeout_s = 3600\n',
    'etc/svc/slots/agent.toml': slot('demo', one),
    'etc/svc/slots/endless.toml': slot('endless', two, '[server]\nextra_args = "--context-shift --slots"\n'),
    'var/lib/svc/registry/registry.toml': `[models.demo]\npath = "${models}/demo.gguf"\n[models.endless]\npath = "${models}/endless.gguf"\n`
  })
  const docker = new Docker({ socketPath: new URL(engine.host).pathname })
  const env = { DOCKER_HOST: engine.host, SVC_TOOLBOX_IMAGE_CPU: engine.llamaImage }
  const ours = async (): Promise<string> => `svc.instance=${(await readFile(`${home}/var/lib/svc/instance-id`, 'utf8')).trim()}`
  const containers = async (): Promise<Docker.ContainerInfo[]> =>
    await docker.listContainers({ all: true, filters: { label: [await ours()] } })
  t.teardown(async () => {
    for (const { Id } of await containers().catch(() => [])) await docker.getContainer(Id).remove({ force: true })
  })
  return { engine, docker, home, start: () => startLive(t, home, env), containers, ours }
}

t.test('the real llama.cpp in a container, behind the real gateway', async t => {
  const live = await setup(t)
  if (live === null) return
  const { docker, containers, ours } = live
  let gateway = await live.start()
  const status = await (await fetch(`${gateway.url}/api/status`)).json() as { runtime: { driver: string, reason: string } }
  t.match(status.runtime, { driver: 'docker', reason: /DOCKER_HOST/ })

  await t.test('100 cold requests start one container, and each gets the whole sentence', async t => {
    const created: string[] = []
    const told = await docker.getEvents({ filters: { type: ['container'], event: ['create'], label: [await ours()] } })
    const events = told as NodeJS.ReadableStream & { destroy (): void }
    events.on('data', (chunk: Buffer) => {
      for (const line of chunk.toString().trim().split('\n')) created.push(slotOfEvent(line))
    })
    const answers = await Promise.all(Array.from({ length: 100 }, async (_, i) => {
      const stream = i % 2 === 0
      const response = await chat(gateway.url, { stream, seed: i })
      const text = await response.text()
      return { status: response.status, content: stream ? readStream(text).content : contentOf(text) }
    }))
    events.destroy()
    for (const answer of answers) t.strictSame(answer, { status: 200, content: demoSentence })
    t.strictSame(created.filter(slot => slot === 'agent'), ['agent'], 'Docker made one container for the slot')
    t.equal((await containers()).length, 1)
  })

  const startEndless = async (): Promise<{ response: Response, text: Promise<string>, first: Promise<void> }> => {
    const response = await chat(gateway.url, { model: 'endless', stream: true, max_tokens: 10_000_000 })
    let seen = (): void => {}
    const first = new Promise<void>(resolve => { seen = resolve })
    const text = (async () => {
      let all = ''
      const decoder = new TextDecoder()
      for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
        all += decoder.decode(chunk, { stream: true })
        if (all.length > 50_000) seen()
      }
      return all
    })()
    return { response, text, first }
  }
  const endless = async (): Promise<Docker.ContainerInfo | undefined> =>
    (await containers()).find(container => container.Labels['svc.slot'] === 'endless' && container.State === 'running')

  await t.test('the memory of the container is told by the list, the counters and the capacity', async t => {
    const get = async <T>(path: string): Promise<T> => await (await fetch(`${gateway.url}${path}`)).json() as T
    const inList = async (): Promise<number | undefined> =>
      (await get<Array<{ name: string, mem_mb?: number }>>('/api/slots')).find(({ name }) => name === 'agent')?.mem_mb
    for (let from = performance.now(); await inList() === undefined && performance.now() - from < 120_000;);
    t.ok((await inList() ?? 0) > 0)
    t.ok((await get<{ agent: { mem_rss_mb: number } }>('/api/slots/metrics')).agent.mem_rss_mb > 0)
    t.ok((await get<{ per_slot: { agent: { mem_mb: number } } }>('/api/slots/capacity')).per_slot.agent.mem_mb > 0)
  })

  await t.test('a container that is killed mid-stream ends the stream with one error event', async t => {
    const { response, text, first } = await startEndless()
    t.equal(response.status, 200)
    await first
    await docker.getContainer((await endless())!.Id).kill()
    const { done, error, content } = readStream(await text)
    t.equal(done, false, 'no [DONE]')
    t.equal(error, 'dispatch.upstream_failed')
    t.ok(content.length > 100)
    t.equal((await chat(gateway.url, { model: 'endless', max_tokens: 3 })).status, 200, 'the next request brings it up again')
  })

  await t.test('a container that is paused mid-stream is found out: the stream ends, and the slot comes up again by itself', async t => {
    // forgets the crash of a moment ago
    await fetch(`${gateway.url}/api/slots/endless/unload`, { method: 'POST' })
    const { text, first } = await startEndless()
    await first
    const frozen = (await endless())!.Id
    await pause(docker.getContainer(frozen))
    const { done, error } = readStream(await text)
    t.strictSame([done, error], [false, 'dispatch.upstream_failed'])
    const from = performance.now()
    for (let running = await endless(); running === undefined || running.Id === frozen; running = await endless()) {
      if (performance.now() - from > 120_000) throw new Error('no other container runs')
    }
    t.notOk((await containers()).some(({ Id }) => Id === frozen), 'the frozen one is gone')
    t.equal((await chat(gateway.url, { model: 'endless', max_tokens: 3 })).status, 200)
  })

  await t.test('an unload by force under a stream is told as one, at once, also when the client does not read', async t => {
    const { text, first } = await startEndless()
    await first
    const deaf = await chat(gateway.url, { model: 'endless', stream: true, max_tokens: 10_000_000, seed: 2 })
    await deaf.body!.getReader().read()
    t.equal((await fetch(`${gateway.url}/api/slots/endless/unload`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"force":true}' })).status, 200)
    const { done, error } = readStream(await text)
    t.strictSame([done, error], [false, 'slot.stopped'])
  })

  await t.test('a client that leaves mid-stream frees the engine', async t => {
    const controller = new AbortController()
    const response = await chat(gateway.url, { model: 'endless', stream: true, max_tokens: 10_000_000 }, controller.signal)
    await response.body!.getReader().read()
    const slots = await (await fetch(`${gateway.url}/api/slots/endless`)).json() as { port: number }
    const busy = async (): Promise<boolean> => {
      const answer = await fetch(`http://127.0.0.1:${slots.port}/slots`)
      return (await answer.json() as Array<{ is_processing: boolean }>).some(slot => slot.is_processing)
    }
    // it names the role of what comes before it begins to work
    while (!await busy());
    controller.abort()
    while (await busy());
    t.pass('it is idle, long before ten million tokens')
  })

  await t.test('a gateway that is killed mid-stream leaves its engines to the next one', async t => {
    const { text, first } = await startEndless()
    await first
    const before = (await containers()).filter(container => container.State === 'running').map(container => container.Id).sort()
    // the socket may break before the process is seen to be gone
    await Promise.all([t.rejects(text, 'the stream breaks off'), gateway.kill('SIGKILL')])
    gateway = await live.start()
    const answer = await chat(gateway.url, { model: 'agent' })
    t.match(await answer.json(), { choices: [{ message: { content: demoSentence } }] })
    t.equal((await chat(gateway.url, { model: 'endless', max_tokens: 3 })).status, 200)
    t.strictSame((await containers()).map(container => container.Id).sort(), before, 'the same containers, no orphan')
    const record = await (await fetch(`${gateway.url}/api/slots/agent`)).json() as { metadata: { adopted: boolean } }
    t.equal(record.metadata.adopted, true)
  })

  await t.test('a container whose slot file is broken at the start runs on, is shown, and is adopted when the file is mended', async t => {
    const path = `${live.home}/etc/svc/slots/agent.toml`
    const text = await readFile(path, 'utf8')
    const running = async (): Promise<string[]> => (await containers()).filter(({ State }) => State === 'running').map(({ Id }) => Id).sort()
    const before = await running()
    t.equal(await gateway.kill('SIGTERM'), 0)
    await writeFile(path, `${text}idle_timeout = 3\n`)
    gateway = await live.start()
    t.strictSame(await running(), before, 'the same containers')
    const rows = await (await fetch(`${gateway.url}/api/slots`)).json() as Array<{ name: string, kind: string }>
    t.match(rows.find(({ name }) => name === 'agent'), { kind: 'unread', container_status: 'running' })
    await writeFile(path, text)
    t.equal((await fetch(`${gateway.url}/api/settings/reload`, { method: 'POST' })).status, 200)
    const answer = await chat(gateway.url, { model: 'agent' })
    t.match(await answer.json(), { choices: [{ message: { content: demoSentence } }] })
    t.strictSame(await running(), before, 'nothing was started anew')
    t.match(await (await fetch(`${gateway.url}/api/slots/agent`)).json(), { state: 'ready', metadata: { adopted: true } })
  })

  await t.test('a graceful stop keeps the containers, a slot that was deleted meanwhile is cleaned up', async t => {
    t.equal(await gateway.kill('SIGTERM'), 0)
    t.equal((await containers()).filter(container => container.State === 'running').length, 2)
    await rm(`${live.home}/etc/svc/slots/endless.toml`)
    gateway = await live.start()
    await until(() => gateway.log().includes('its slot no longer exists'), 'the orphan is seen')
    t.strictSame((await containers()).map(container => container.Labels['svc.slot']), ['agent'])
    const response = await fetch(`${gateway.url}/api/slots/agent/unload`, { method: 'POST' })
    t.equal(response.status, 200)
    t.strictSame(await containers(), [], 'nothing is left')
    t.equal(await gateway.kill('SIGTERM'), 0)
  })
})

function slotOfEvent (line: string): string {
  return (JSON.parse(line) as { Actor: { Attributes: Record<string, string> } }).Actor.Attributes['svc.slot'] ?? ''
}

function contentOf (answer: string): string {
  return (JSON.parse(answer) as { choices: Array<{ message: { content: string } }> }).choices[0]!.message.content
}
