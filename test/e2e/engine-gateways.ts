import { readFile } from 'node:fs/promises'
import Docker from 'dockerode'
import type { Test } from 'tap'
import { skipped, testEngine } from '../kernel/runtime/engines.js'
import { freePort } from '../ports.js'
import { fakeEnginesImage } from './fake-engines-image.js'
import { liveHome, startLive, writeHome, type LiveGateway } from './live-gateway.js'
import { mediaHome } from './media-surfaces.js'
import { TEXT_PORTS, textHome } from './text-surfaces.js'

const MEDIA_PORTS = 3
const REGISTRY = 'var/lib/svc/registry/registry.toml'

export interface ContainerGateway extends LiveGateway {
  readonly home: string
  readonly docker: Docker
  /** The running container of a slot. */
  readonly container: (slot: string) => Promise<Docker.Container>
}

/**
 * A gateway with a slot for every surface, each engine in a container: a real llama.cpp and whisper-server, fakes of
 * ComfyUI and Kokoro. Null after the test was marked as skipped because there is no container engine.
 * @param settings more of svc.toml
 * @param files further ones of its home
 */
export async function containerGateway (
  t: Test, settings = '', files: Readonly<Record<string, string | Buffer>> = {}
): Promise<ContainerGateway | null> {
  const engine = await testEngine(t, 'docker')
  if (engine === null) return null
  const whisper = process.env.SVC_TEST_WHISPER_IMAGE
  if (whisper === undefined) return skipped(t, 'SVC_TEST_WHISPER_IMAGE is not set; run: eval "$(test/engines/up.sh)"')
  const home = await liveHome(t, { 'etc/svc/svc.toml': `[runtime]\nstop_with_gateway = true\n[slots]\nautostart = false\n${settings}` })
  const ports: number[] = []
  while (ports.length < TEXT_PORTS + MEDIA_PORTS) ports.push(await freePort())
  const [text, media] = [textHome(home, ports), mediaHome(home, ports.slice(TEXT_PORTS))]
  await writeHome(home, { ...text, ...media, [REGISTRY]: `${String(text[REGISTRY])}${String(media[REGISTRY])}`, ...files })
  const docker = new Docker({ socketPath: new URL(engine.host).pathname })
  const fakes = await fakeEnginesImage(t, engine)
  const containers = async (): Promise<Docker.ContainerInfo[]> => {
    const instance = (await readFile(`${home}/var/lib/svc/instance-id`, 'utf8')).trim()
    return docker.listContainers({ all: true, filters: { label: [`svc.instance=${instance}`] } })
  }
  t.teardown(async () => {
    for (const { Id } of await containers()) await docker.getContainer(Id).remove({ force: true })
  })
  const gateway = await startLive(t, home, {
    DOCKER_HOST: engine.host,
    SVC_TOOLBOX_IMAGE_CPU: engine.llamaImage,
    SVC_TOOLBOX_IMAGE_WHISPER: whisper,
    SVC_TOOLBOX_IMAGE_TTS_CPU: fakes,
    SVC_TOOLBOX_IMAGE_IMAGEGEN: fakes
  })
  const container = async (slot: string): Promise<Docker.Container> => {
    const found = (await containers()).find(({ Labels, State }) => Labels['svc.slot'] === slot && State === 'running')
    if (found === undefined) throw new Error(`no container of ${slot} runs`)
    return docker.getContainer(found.Id)
  }
  return { ...gateway, home, docker, container }
}

/**
 * A gateway with a slot for every text surface, its engine the embedded one.
 * @param settings more of svc.toml
 * @param files further ones, or others, of its home
 */
export async function embeddedGateway (t: Test, settings = '', files: Readonly<Record<string, string | Buffer>> = {}): Promise<LiveGateway> {
  const home = await liveHome(t, {
    'etc/svc/svc.toml': `[runtime]\ndriver = "process"\nstop_with_gateway = true\n[slots]\nautostart = false\n[plugins.config.llm-server]\nprefer = "embedded"\n${settings}`
  })
  const ports: number[] = []
  while (ports.length < TEXT_PORTS) ports.push(await freePort())
  await writeHome(home, { ...textHome(home, ports), ...files })
  return startLive(t, home)
}
