import { access, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf, type Logger, type Paths } from '../../../kernel/contract/index.js'
import { LABEL_INSTANCE, type ContainerRuntime, type EngineInspection } from '../../../kernel/contract/provider/engine-runtime.js'
import { connectDocker, type DockerEngine } from '../../../kernel/runtime/docker/docker-connect.js'
import { parseDockerHost } from '../../../kernel/runtime/docker/docker-endpoint.js'
import { statusOf } from '../../../kernel/runtime/docker/docker-errors.js'
import { createDockerRuntime } from '../../../kernel/runtime/docker/docker-runtime.js'
import { readEngineHosts } from '../../../kernel/runtime/engine-hosts.js'
import { resolveImage } from '../../../kernel/runtime/image/image-manifest.js'
import { openProcessRuntime } from '../../../kernel/runtime/process/process-runtime.js'
import { createSystemClock } from '../../../kernel/state/system-clock.js'
import { checkHome } from '../config/check-home.js'
import type { Found, Kept, Thing } from './thing.js'

type Env = Readonly<Record<string, string | undefined>>

const CONNECT_MS = 10_000
const STOP_S = 20
const quiet = (): void => {}
const log: Logger = { debug: quiet, info: quiet, warn: quiet, error: quiet }

/**
 * What runs for a home: containers with its label on the engine hosts that it used, and programs. With `images` those of its
 * containers and of its configuration, too.
 */
export async function enginesOf (paths: Paths, env: Env, { images }: { readonly images: boolean }): Promise<Found> {
  const instance = (await readFile(join(paths.state, 'instance-id'), 'utf8').catch(() => '')).trim()
  const things = [...await programsOf(paths, env)]
  const kept: Kept[] = []
  if (instance === '') return { things, kept }
  const { used, former } = await readEngineHosts(paths.state)
  const hosts = [...used === null ? [] : [used], ...former].flatMap(({ driver, endpoint }) => driver === 'process' || endpoint === null ? [] : [endpoint])
  const configured = images && hosts.length > 0 ? await imagesOf(paths, env) : []
  for (const host of new Set(hosts)) {
    const there = { open: () => connect(host, env), instance, configured: images ? configured : null }
    await containersOn(there).then(found => things.push(...found), (error: unknown) => kept.push({ name: `engines on ${host}`, why: messageOf(error) }))
  }
  // a container has to go before its image
  return { things: things.toSorted((a, b) => Number(a.kind === 'image') - Number(b.kind === 'image')), kept }
}

interface Host {
  readonly open: () => Promise<DockerEngine>
  readonly instance: string
  /** Images of the configuration; null where images stay. */
  readonly configured: readonly string[] | null
}

async function containersOn ({ open, instance, configured }: Host): Promise<readonly Thing[]> {
  const engine = await open()
  const runtime = containersOf(engine)
  try {
    const containers = await runtime.list({ [LABEL_INSTANCE]: instance })
    const names = configured === null ? [] : [...new Set([...containers.map(({ label }) => label), ...configured])]
    const are = await Promise.all(names.map(name => hasImage(engine, name)))
    return [
      ...containers.map(found => engineThing(async () => containersOf(await open()), found)),
      ...names.filter((_, i) => are[i]).map(name => imageThing(open, name))
    ]
  } finally {
    await runtime.close()
  }
}

function containersOf (engine: DockerEngine): ContainerRuntime {
  return createDockerRuntime({ engine, clock: createSystemClock(), log, reason: '' })
}

async function programsOf ({ state }: Paths, env: Env): Promise<readonly Thing[]> {
  if (!await access(join(state, 'runtime')).then(() => true, () => false)) return []
  const open = (): Promise<ContainerRuntime> => openProcessRuntime({ stateDir: state, env, clock: createSystemClock(), log, reason: '' })
  const runtime = await open()
  try {
    return (await runtime.list({})).filter(engine => engine.state === 'running').map(engine => engineThing(open, engine))
  } finally {
    await runtime.close()
  }
}

/** Opened for each: whether all of them go is decided in between, by someone at a prompt. */
function engineThing (open: () => Promise<ContainerRuntime>, { id, name, label }: EngineInspection): Thing {
  return {
    kind: 'engine',
    name: `${name} (${label})`,
    remove: async () => {
      const runtime = await open()
      // a service may have to end what it runs itself, as a database; one that is deaf to it goes all the same
      await runtime.stop(id, STOP_S).catch(() => undefined)
      await runtime.remove(id).finally(() => runtime.close())
    }
  }
}

async function connect (host: string, env: Env): Promise<DockerEngine> {
  const endpoint = parseDockerHost(host, env)
  if (typeof endpoint === 'string') throw new Error(endpoint)
  return await connectDocker(endpoint, { clock: createSystemClock(), withinMs: CONNECT_MS })
}

/** Of the manifest and of profiles; none where the configuration cannot be read. */
async function imagesOf (paths: Paths, env: Env): Promise<readonly string[]> {
  const { snapshot } = await checkHome(paths, env).catch(() => ({ snapshot: null }))
  if (snapshot === null) return []
  const short = [...Object.keys(snapshot.manifest.toolbox_images), ...[...snapshot.profiles.values()].map(({ image }) => image)]
  return [...new Set(short.flatMap(name => {
    try {
      return [resolveImage(name, snapshot.manifest, env).ref]
    } catch {
      return []
    }
  }))]
}

async function hasImage (engine: DockerEngine, name: string): Promise<boolean> {
  return await engine.call(`looking for ${name}`, async signal => {
    try {
      await engine.docker.getImage(name).inspect({ abortSignal: signal } as object)
      return true
    } catch (error) {
      if (statusOf(error) === 404) return false
      throw error
    }
  })
}

/** Not by force: one that another container uses stays, and that is told. */
function imageThing (open: () => Promise<DockerEngine>, name: string): Thing {
  return {
    kind: 'image',
    name,
    remove: async () => {
      const engine = await open()
      await engine.call(`removing ${name}`, async signal => {
        await engine.docker.getImage(name).remove({ abortSignal: signal } as object)
          .catch((error: unknown) => { if (statusOf(error) !== 404) throw error })
      }, { withinMs: 120_000 }).finally(() => engine.close())
    }
  }
}
