import { access } from 'node:fs/promises'
import type Docker from 'dockerode'
import { svcError, type Clock, type Logger, type RuntimeInfo, type SvcError } from '../../contract/index.js'
import {
  LABEL_PORT, type ContainerRuntime, type EngineExit, type EngineInspection, type EngineSpec, type LogOptions, type ProgramPipes,
  type PullProgress
} from '../../contract/provider/engine-runtime.js'
import { cgroupMemory } from './cgroup-memory.js'
import { attachContainer } from './docker-attach.js'
import type { DockerEngine } from './docker-connect.js'
import { createBody, unsupported, type ContainerSpec } from './docker-create.js'
import { containerGone, engineError, engineMessage, isPortTaken, saysGone, statusOf } from './docker-errors.js'
import { ExitWatches } from './docker-exit-watches.js'
import { portsOf, toInspection } from './docker-inspect.js'
import { containerLogs } from './docker-logs.js'
import { imagePresent, pullImage } from './docker-pull.js'
import { containerMemory } from './docker-stats.js'
import { usableReference } from '../image/image-ref.js'
import { assertPortsFree, portConflict } from '../port-check.js'
import { pause, pollUntil } from '../../async/waiting.js'

/** What the engine may take beyond the stop timeout, and for a removal: image layers are deleted, networks unplugged. */
const GRACE_MS = 30_000
const GONE_POLL_MS = 100
const ENDED_POLL_MS = 250
/** Docker's and Podman's ids. Names would find containers too, and are nothing to act on. */
const CONTAINER_ID = /^[0-9a-f]{64}$/

export interface DockerRuntimeOptions {
  readonly engine: DockerEngine
  readonly clock: Clock
  readonly log: Logger
  readonly reason: string
}

/** Containers, on Docker or on Podman's Docker-compatible socket. Takes the engine over and closes it with itself. */
export function createDockerRuntime (options: DockerRuntimeOptions): ContainerRuntime {
  return new DockerRuntime(options)
}

class DockerRuntime implements ContainerRuntime {
  readonly info: RuntimeInfo
  readonly form = 'container'
  readonly #engine: DockerEngine
  readonly #clock: Clock
  readonly #exits: ExitWatches

  constructor ({ engine, clock, log, reason }: DockerRuntimeOptions) {
    this.#engine = engine
    this.#clock = clock
    this.#exits = new ExitWatches({ engine, clock, log, list: labels => this.list(labels) })
    this.info = { driver: engine.facts.kind, version: engine.facts.version, endpoint: engine.endpoint.url, reason }
  }

  imagePresent (image: string, digest: string | null, signal: AbortSignal): Promise<boolean> {
    return imagePresent(this.#engine, image, digest, signal)
  }

  pull (image: string, digest: string | null, onProgress: (progress: PullProgress) => void, signal: AbortSignal): Promise<void> {
    return pullImage(this.#engine, image, digest, onProgress, signal)
  }

  async assertPortFree (spec: EngineSpec): Promise<void> {
    const { form } = spec
    if (form.kind !== 'container' || this.#engine.endpoint.kind !== 'socket') return
    await assertPortsFree(form.publishHost ?? '0.0.0.0', spec)
  }

  /** An abort waits for the engine's answer, so that the container can be removed again: nothing is left behind. */
  async create (spec: EngineSpec, signal: AbortSignal): Promise<string> {
    signal.throwIfAborted()
    const { form } = spec
    if (form.kind !== 'container') {
      throw svcError('runtime.failed',
        `engine ${spec.name} is a program and this gateway runs containers; set [runtime] driver to process`)
    }
    const containerSpec: ContainerSpec = { ...spec, form }
    const problem = unsupported(containerSpec, this.#engine.facts)
    if (problem !== null) throw problem
    await this.#assertSources(containerSpec)
    const id = await this.#engine.call(`creating ${spec.name}`, async inner => {
      try {
        // name and body apart: dockerode would put the whole specification, secrets and all, into the URL
        const container = await this.#engine.docker.createContainer({
          _query: { name: spec.name }, _body: createBody(containerSpec, this.#engine.facts), abortSignal: inner
        } as object as Docker.ContainerCreateOptions)
        return container.id
      } catch (error) {
        throw statusOf(error) === 404 ? imageMissing(usableReference(form.image, form.digest), error) : error
      }
    }, { withinMs: 2 * GRACE_MS })
    if (signal.aborted) {
      await this.remove(id)
      signal.throwIfAborted()
    }
    return id
  }

  async start (id: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    const data = await this.#inspect(id)
    if (data === null) throw containerGone(id)
    const { name, labels, state } = toInspection(data, this.#engine.host)
    const { host, port } = wantedPort(data)
    if (state === 'running') return
    // with the host's network only the engine itself would notice, after a while
    if (host === null && this.#engine.endpoint.kind === 'socket') await assertPortsFree('0.0.0.0', { port, ports: portsOf(labels) })
    this.#exits.starting(id)
    await this.#engine.call(`starting ${name}`, async inner => {
      try {
        await this.#engine.docker.getContainer(id).start({ abortSignal: inner } as object)
      } catch (error) {
        if (statusOf(error) === 304) return
        if (saysGone(error) && await this.#inspect(id) === null) throw containerGone(id, error)
        throw port !== null && isPortTaken(engineMessage(error)) ? portConflict(host ?? '0.0.0.0', port, error) : error
      }
    }, { signal, withinMs: 2 * GRACE_MS })
    this.#exits.started(id, labels)
  }

  /** Attached first, so that nothing of what it writes is missed. */
  async startPiped (id: string, signal: AbortSignal): Promise<ProgramPipes> {
    signal.throwIfAborted()
    const pipes = await this.#engine.call(`attaching to container ${id.slice(0, 12)}`, inner =>
      attachContainer(this.#engine.docker, id, inner), { signal })
    try {
      await this.start(id, signal)
    } catch (error) {
      pipes.stdin.destroy()
      throw error
    }
    return pipes
  }

  /**
   * The engine's answer is neither needed nor enough: Podman waits the whole timeout for a container that was
   * removed meanwhile, and both answer at once when another stop is under way. So the container is looked at.
   */
  async stop (id: string, timeoutS: number): Promise<void> {
    if (!CONTAINER_ID.test(id)) return
    const withinMs = timeoutS * 1000 + GRACE_MS
    const deadline = this.#clock.monotonic() + withinMs
    let problem: SvcError | null = null
    let answered = false
    const asked = this.#tolerant(`stopping container ${id.slice(0, 12)}`, withinMs, inner =>
      this.#engine.docker.getContainer(id).stop({ t: Math.ceil(timeoutS), abortSignal: inner } as object)
    ).then(outcome => {
      problem = outcome
      answered = true
    })
    asked.catch(() => undefined) // counts only while it is waited for
    for (;;) {
      await (answered ? pause(this.#clock, GONE_POLL_MS) : Promise.race([asked, pause(this.#clock, ENDED_POLL_MS)]))
      const found = await this.inspect(id)
      if (found === null || found.state !== 'running') return
      if (this.#clock.monotonic() >= deadline) throw problem ?? stillThere(id, 'still runs')
    }
  }

  async remove (id: string): Promise<void> {
    if (!CONTAINER_ID.test(id)) return
    const doing = `removing container ${id.slice(0, 12)}`
    let problem: SvcError | null = null
    const gone = await pollUntil(this.#clock, GONE_POLL_MS, GRACE_MS, async () => {
      // asked again each time: a removal under way may fail and leave the container
      problem = await this.#tolerant(doing, GRACE_MS, inner =>
        this.#engine.docker.getContainer(id).remove({ force: true, v: true, abortSignal: inner } as object))
      return await this.inspect(id) === null
    })
    if (!gone) throw problem ?? stillThere(id, 'is still there')
  }

  async inspect (id: string): Promise<EngineInspection | null> {
    const data = await this.#inspect(id)
    const found = data === null ? null : toInspection(data, this.#engine.host)
    this.#exits.saw(id, found)
    return found
  }

  async list (labels: Readonly<Record<string, string>>): Promise<readonly EngineInspection[]> {
    const wanted = Object.entries(labels)
    const filters = { label: wanted.map(([name, value]) => `${name}=${value}`) }
    const rows = await this.#engine.call('listing containers', inner =>
      this.#engine.docker.listContainers({ all: true, filters: JSON.stringify(filters), abortSignal: inner }))
    const found = await Promise.all(rows.map(row => this.inspect(row.Id)))
    return found.filter(engine => engine !== null)
      .filter(engine => wanted.every(([name, value]) => engine.labels[name] === value))
  }

  /** A container on another machine has no files here. */
  async memoryHere (id: string): Promise<number | null> {
    return this.#engine.endpoint.kind === 'socket' ? await cgroupMemory(this.#engine.facts.kind, id) : null
  }

  async memoryThere (id: string, signal: AbortSignal): Promise<number | null> {
    if (!CONTAINER_ID.test(id)) return null
    return await this.#engine.call(`measuring container ${id.slice(0, 12)}`,
      inner => containerMemory(this.#engine.docker, id, inner), { signal })
  }

  async* logs (id: string, options: LogOptions): AsyncIterable<string> {
    if (!CONTAINER_ID.test(id)) throw containerGone(id)
    yield* containerLogs(this.#engine, id, options)
  }

  onExit (instance: string, listener: (exit: EngineExit) => void): () => void {
    return this.#exits.listen(instance, listener)
  }

  async close (): Promise<void> {
    this.#engine.close()
    await this.#exits.stop()
  }

  /** Podman's Docker-compatible API makes a folder, owned by root, where the source of a mount is missing. Docker refuses. */
  async #assertSources ({ name, form }: ContainerSpec): Promise<void> {
    if (this.#engine.facts.kind !== 'podman' || this.#engine.endpoint.kind !== 'socket') return
    for (const { source } of form.mounts) {
      await access(source).catch((error: unknown) => {
        throw svcError('runtime.failed', `creating ${name} failed: mount source ${source} does not exist; create the path or correct it`,
          { details: { source }, cause: error })
      })
    }
  }

  #inspect (id: string): Promise<Docker.ContainerInspectInfo | null> {
    if (!CONTAINER_ID.test(id)) return Promise.resolve(null)
    return this.#engine.call(`inspecting container ${id.slice(0, 12)}`, async inner => {
      try {
        return await this.#engine.docker.getContainer(id).inspect({ abortSignal: inner })
      } catch (error) {
        if (saysGone(error)) return null
        throw error
      }
    })
  }

  /**
   * For verbs whose goal may already be reached, perhaps by another caller: an answer that says so, or that the container
   * is busy with just that, is fine. Any other is returned, and counts only when the goal is not reached after all.
   */
  async #tolerant (doing: string, withinMs: number, work: (signal: AbortSignal) => Promise<unknown>): Promise<SvcError | null> {
    try {
      await this.#engine.call(doing, async inner => {
        await work(inner).catch((error: unknown) => {
          if (!saysGone(error) && ![304, 409].includes(statusOf(error) ?? 0)) throw error
        })
      }, { withinMs })
      return null
    } catch (error) {
      const problem = engineError(doing, this.#engine.endpoint.url, error)
      if (problem.code === 'runtime.unavailable') throw problem
      return problem
    }
  }
}

/** Host null: the container uses the host's network. */
function wantedPort (data: Docker.ContainerInspectInfo): { host: string | null, port: number | null } {
  const bindings = (data.HostConfig.PortBindings ?? {}) as Record<string, { HostIp?: string, HostPort?: string }[] | null>
  const own = data.Config.Labels?.[LABEL_PORT]
  const binding = (bindings[`${own}/tcp`] ?? Object.values(bindings)[0])?.[0]
  if (binding !== undefined) return { host: binding.HostIp === '' ? '0.0.0.0' : binding.HostIp ?? '0.0.0.0', port: Number(binding.HostPort) }
  return { host: null, port: data.HostConfig.NetworkMode === 'host' && own !== undefined ? Number(own) : null }
}

function imageMissing (image: string, cause: unknown): SvcError {
  return svcError('runtime.image_missing', `image ${image} is missing; pull it first`, { details: { image }, cause })
}

function stillThere (id: string, what: string): SvcError {
  return svcError('runtime.failed', `container ${id.slice(0, 12)} ${what}; look at it with the command line of the container engine`,
    { details: { id } })
}
