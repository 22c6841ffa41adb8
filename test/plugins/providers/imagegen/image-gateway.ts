import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import type { AnyPlugin, GatewayEvent } from '../../../../kernel/contract/index.js'
import { createTestGateway, type TestGateway, type TestGatewayOptions } from '../../../../kernel/testing/index.js'
import events from '../../../../plugins/api/events/index.js'
import images from '../../../../plugins/api/images/index.js'
import imagegen from '../../../../plugins/providers/imagegen/index.js'
import imageRoutes from '../../../../plugins/v1/images/index.js'
import library from '../../../../plugins/services/library/index.js'
import modelRoutes from '../../../../plugins/v1/models/index.js'
import { freePort, reservePorts } from '../../../ports.js'

export const FAKE_MAIN = fileURLToPath(new URL('./fake/main.js', import.meta.url))
export const CHECKPOINTS = ['sd_xl_turbo_1.0_fp16.safetensors', 'v1-5-pruned-emaonly.safetensors']
export const imagePlugins: readonly AnyPlugin[] = [imagegen, imageRoutes, images, events, library, modelRoutes]

export interface EngineState {
  readonly pid: number
  readonly seen: readonly string[]
  readonly running: string | null
  readonly pending: readonly string[]
  readonly history: readonly string[]
  readonly flags: Readonly<Record<string, unknown>>
  readonly sockets: number
}

export interface ImageGateway extends TestGateway {
  /** Asks the running engine of a slot how it is, and tells it how to work. */
  engine (settings?: Readonly<Record<string, unknown>>, slot?: string): Promise<EngineState>
  /** Polls the engine until it fits. */
  engineUntil (fits: (state: EngineState) => boolean, what: string): Promise<EngineState>
  post (body: unknown, signal?: AbortSignal): Promise<Response>
  events (type?: string): readonly GatewayEvent[]
  dataRoot: string
}

export interface ImageGatewayOptions extends Omit<TestGatewayOptions, 'files'> {
  /** Also by the port that the image engine should have. */
  readonly files?: TestGatewayOptions['files'] | ((imagePort: number) => TestGatewayOptions['files'])
  readonly svc?: string
  /** Lines of img.toml beyond the usual. */
  readonly img?: string
  /** Files in models/checkpoints. */
  readonly checkpoints?: readonly string[]
  readonly imagegen?: Readonly<Record<string, unknown>>
}

const IMG = 'type = "image"\nprovider = "imagegen"\ndevice = "cpu"\n'

const pool = await reservePorts()
/**
 * The same for each gateway of a home. Without one an image engine takes the port that ComfyUI usually has, which two
 * engines of tests that run beside each other may both find free: one of them then answers for the other.
 */
const portOfHome = new Map<string, number>()

/** A gateway that runs the fake ComfyUI as a child process for slot `img`. */
export async function imageGateway (t: Test, options: ImageGatewayOptions = {}): Promise<ImageGateway> {
  const { svc = '', img = '', checkpoints = CHECKPOINTS, imagegen: config = {}, files = {}, plugins = imagePlugins, home: given, pluginConfig = {}, ...rest } = options
  // not a testdir: that goes before the gateway does
  const home = given ?? await mkdtemp(join(tmpdir(), 'svc-image-'))
  const port = portOfHome.get(home) ?? await freePort()
  portOfHome.set(home, port)
  const dataRoot = join(home, 'var/lib/svc/comfyui')
  await mkdir(join(dataRoot, 'models/checkpoints'), { recursive: true })
  for (const name of checkpoints) await writeFile(join(dataRoot, 'models/checkpoints', name), '')
  const gateway = await createTestGateway({
    home,
    stopEngines: true,
    plugins,
    pluginConfig: { imagegen: { python: process.execPath, main: FAKE_MAIN, ...config }, ...pluginConfig },
    files: {
      'etc/svc/svc.toml': `[runtime]\ndriver = "process"\n[slots]\nautostart = false\n${pool.toml}${svc}`,
      'etc/svc/slots/img.toml': `${IMG}port = ${port}\n${img}`,
      ...(typeof files === 'function' ? files(port) : files)
    },
    ...rest
  })
  t.teardown(async () => {
    await gateway.close()
    await rm(given === undefined ? home : join(dataRoot, 'output'), { recursive: true, force: true })
  })
  const engine: ImageGateway['engine'] = async (settings = {}, slot = 'img') => {
    const { address } = gateway.slots.status(slot)
    if (address === null) throw new Error(`no engine runs for ${slot}`)
    const answer = await fetch(`http://${address.host}:${address.port}/__test__`, {
      method: 'POST', headers: { connection: 'close' }, body: JSON.stringify(settings)
    })
    return await answer.json() as EngineState
  }
  return Object.assign(gateway, {
    dataRoot,
    engine,
    engineUntil: async (fits: (state: EngineState) => boolean, what: string) => {
      for (const end = performance.now() + 120_000; ;) {
        const state = await engine().catch(() => null)
        if (state !== null && fits(state)) return state
        if (performance.now() > end) throw new Error(`it did not come about: ${what}: ${JSON.stringify(state)}`)
        await new Promise(resolve => { setTimeout(resolve, 10) })
      }
    },
    post: (body: unknown, signal?: AbortSignal) => gateway.fetch('/v1/images/generations', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: typeof body === 'string' ? body : JSON.stringify(body),
      ...(signal === undefined ? {} : { signal })
    }),
    events: (type?: string) =>
      gateway.gateway.kernel().events.list({ limit: 1000, ...(type === undefined ? {} : { type }) }).events
  })
}

export async function cachedFiles (home: string): Promise<readonly string[]> {
  return await readdir(join(home, 'var/lib/svc/images/cache'))
}
