import { readFile } from 'node:fs/promises'
import Docker from 'dockerode'
import t from 'tap'
import { skipped, testEngine } from '../kernel/runtime/engines.js'
import { freePort } from '../ports.js'
import { fakeEnginesImage } from './fake-engines-image.js'
import { liveHome, startLive, writeHome } from './live-gateway.js'
import { mediaHome } from './media-surfaces.js'
import { refusesBothModes, textHome } from './text-surfaces.js'
import { endpoints } from './v1-endpoints.js'

t.setTimeout(180_000)

const TEXT_PORTS = 6
const MEDIA_PORTS = 3

t.test('every endpoint of /v1 on engines in containers, in the clients that people use', async t => {
  const engine = await testEngine(t, 'docker')
  if (engine === null) return
  const whisper = process.env.SVC_TEST_WHISPER_IMAGE
  if (whisper === undefined) return void skipped(t, 'SVC_TEST_WHISPER_IMAGE is not set; run: eval "$(test/engines/up.sh)"')
  const home = await liveHome(t, { 'etc/svc/svc.toml': '[runtime]\nstop_with_gateway = true\n[slots]\nautostart = false\n' })
  const ports: number[] = []
  while (ports.length < TEXT_PORTS + MEDIA_PORTS) ports.push(await freePort())
  const [text, media] = [textHome(home, ports), mediaHome(home, ports.slice(TEXT_PORTS))]
  const registry = 'var/lib/svc/registry/registry.toml'
  await writeHome(home, { ...text, ...media, [registry]: `${String(text[registry])}${String(media[registry])}` })
  const docker = new Docker({ socketPath: new URL(engine.host).pathname })
  const fakes = await fakeEnginesImage(t, engine)
  t.teardown(async () => {
    const instance = (await readFile(`${home}/var/lib/svc/instance-id`, 'utf8')).trim()
    const left = await docker.listContainers({ all: true, filters: { label: [`svc.instance=${instance}`] } })
    for (const { Id } of left) await docker.getContainer(Id).remove({ force: true })
  })
  const gateway = await startLive(t, home, {
    DOCKER_HOST: engine.host,
    SVC_TOOLBOX_IMAGE_CPU: engine.llamaImage,
    SVC_TOOLBOX_IMAGE_WHISPER: whisper,
    SVC_TOOLBOX_IMAGE_TTS_CPU: fakes,
    SVC_TOOLBOX_IMAGE_IMAGEGEN: fakes
  })
  for (const [route, { works }] of Object.entries(endpoints)) {
    for (const work of works) await t.test(`${route}: ${work.name}`, t => work(t, gateway.url))
  }
  await t.test('both modes in one engine', t => refusesBothModes(t, gateway.url))
  t.equal(await gateway.kill('SIGTERM'), 0)
})
