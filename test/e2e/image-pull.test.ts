import Docker from 'dockerode'
import t, { type Test } from 'tap'
import { bigramGguf } from '../../plugins/services/demo/bigram-gguf.js'
import { demoSentence } from '../../plugins/services/demo/sentence.js'
import { testEngine, testRegistry } from '../kernel/runtime/engines.js'
import { freePort } from '../ports.js'
import { until } from '../wire/wire-gateway.js'
import { chat, liveHome, startLive, writeHome } from './live-gateway.js'

t.setTimeout(600_000)

/** Puts the llama image into the registry under a name of its own and takes that name out of the engine again. */
async function publish (t: Test, docker: Docker, source: string, ref: string): Promise<string> {
  const image = docker.getImage(source)
  const colon = ref.lastIndexOf(':')
  await image.tag({ repo: ref.slice(0, colon), tag: ref.slice(colon + 1) })
  const progress = await docker.getImage(ref).push({ authconfig: { username: 'x', password: 'x' } })
  await new Promise<void>((resolve, reject) => {
    docker.modem.followProgress(progress, (error: Error | null) => error === null ? resolve() : reject(error))
  })
  const { RepoDigests } = await docker.getImage(ref).inspect()
  const digest = RepoDigests.find(candidate => candidate.startsWith(ref.slice(0, colon)))!.split('@')[1]!
  await docker.getImage(ref).remove()
  t.teardown(() => docker.getImage(ref).remove().catch(() => {}))
  return digest
}

t.test('an image that is not there is pulled: by the first request, by the verb, and only when it is the pinned one', async t => {
  const engine = await testEngine(t, 'docker')
  const registry = engine === null ? null : await testRegistry(t)
  if (engine === null || registry === null) return
  const docker = new Docker({ socketPath: new URL(engine.host).pathname })
  const ref = `${registry}/svc-e2e/llama:pull-${process.pid}`
  const digest = await publish(t, docker, engine.llamaImage, ref)
  const home = await liveHome(t, { 'var/lib/svc/models/demo.gguf': bigramGguf() })
  const slot = async (image: string): Promise<string> =>
    `device = "cpu"\nport = ${await freePort()}\nimage = "${image}"\n[model]\ndefault = "demo"\n`
  await writeHome(home, {
    'etc/svc/svc.toml': '[slots]\nautostart = false\n',
    'etc/svc/slots/agent.toml': await slot(ref),
    'etc/svc/slots/pinned.toml': await slot(`${ref}@${digest}`),
    'etc/svc/slots/forged.toml': await slot(`${ref}@sha256:${'0'.repeat(64)}`),
    'etc/svc/slots/nowhere.toml': await slot(`${registry}/svc-e2e/nothing:1`),
    'var/lib/svc/registry/registry.toml': `[models.demo]\npath = "${home}/var/lib/svc/models/demo.gguf"\n`
  })
  const gateway = await startLive(t, home, { DOCKER_HOST: engine.host })
  t.teardown(async () => {
    for (const name of ['agent', 'pinned']) await fetch(`${gateway.url}/api/slots/${name}/unload`, { method: 'POST' }).catch(() => {})
  })

  await t.test('the first request waits for it', async t => {
    const states: string[] = []
    const stop = new AbortController()
    const watched = await fetch(`${gateway.url}/api/slots/agent/state/stream`, { signal: stop.signal })
    const watching = (async () => {
      for await (const chunk of watched.body as unknown as AsyncIterable<Uint8Array>) {
        for (const [, state] of Buffer.from(chunk).toString().matchAll(/"state":"(\w+)"/g)) states.push(state!)
      }
    })().catch(() => {})
    await until(() => states.includes('offline'), 'it is watched')
    const response = await chat(gateway.url, {})
    t.equal(response.status, 200)
    t.match(await response.json(), { choices: [{ message: { content: demoSentence } }] })
    await until(() => states.includes('warming'), 'it has started')
    stop.abort()
    await watching
    const order = states.filter((state, i) => state !== states[i - 1])
    t.strictSame(order.slice(0, 4), ['offline', 'pulling', 'starting', 'warming'])
  })

  await t.test('the verb pulls ahead, tells its progress and joins a pull that runs', async t => {
    await fetch(`${gateway.url}/api/slots/agent/unload`, { method: 'POST' })
    await docker.getImage(ref).remove()
    const status = async (): Promise<{ state: string }> => await (await fetch(`${gateway.url}/api/slots/agent/pull/status`)).json() as { state: string }
    t.match(await status(), { state: 'missing', image: ref })
    const asked = await fetch(`${gateway.url}/api/slots/agent/pull`, { method: 'POST' })
    t.equal(asked.status, 202)
    t.match(await asked.json(), { resumed: false, state: 'pulling', image: ref })
    const stream = await (await fetch(`${gateway.url}/api/slots/agent/pull/stream`)).text()
    t.match(stream, /"state":"(completed|present)"/)
    t.match(await status(), { state: 'present' })
  })

  await t.test('a pinned image is taken by its digest, another one is refused', async t => {
    const pinned = await chat(gateway.url, { model: 'pinned' })
    t.equal(pinned.status, 200, pinned.ok ? 'by its digest' : await pinned.text())
    for (const name of ['forged', 'nowhere']) {
      const response = await chat(gateway.url, { model: name })
      t.equal(response.status, 502, name)
      t.match(await response.json(), { error: { code: 'slot.load_failed', details: { slot: name, reason: /^runtime\.(image_missing|digest_mismatch)$/ } } })
    }
  })
})
