import type { FastifyInstance } from 'fastify'
import { messageOf, svcError, type EngineForm, type GatewayInfo, type Logger, type PluginReport } from './contract/index.js'
import type { GatewayOptions } from './gateway-options.js'
import { spoolFolder, sweepSpool } from './dispatch/upload/spool-file.js'
import { GatewayConfigCheck } from './host/start/config-check.js'
import { preparePluginHome } from './host/packages/plugin-home.js'
import type { PluginHost } from './host/plugin-host.js'
import { guardProcess } from './host/watch/process-guard.js'
import { Services } from './host/mount/services.js'
import { BodyReads } from './http/body/body-reads.js'
import { HttpServer, isLoopback } from './http/server/http-server.js'
import { OpenStreams } from './http/stream/sse-reply.js'
import { provideCore } from './core-services.js'
import { drainRequests } from './request-drain.js'
import { tellFindings } from './start-findings.js'
import { createHost } from './gateway-host.js'
import { createInference, type Inference } from './inference.js'
import { closeKernel, openKernel, type KernelServices } from './kernel-services.js'
import { createLogger, withShortText } from './logger.js'
import { replicaPlace } from './slots/schedule/replica-names.js'
import { autostart } from './slots/life/autostart.js'
import { createAgentFiles } from './tools/agent-files.js'
import { Tools } from './tools/tool-catalogue.js'
import { noteStopping } from './state/home-lock.js'
import { createSystemClock } from './state/system-clock.js'
import { packageRoot, version } from './version.js'

export interface StartedGateway {
  readonly baseUrl: string
  readonly info: GatewayInfo
  /** Milliseconds from `start` to the moment it listened. */
  readonly listeningMs: number
}

export interface Gateway {
  /**
   * Resolves when it listens and every plugin has started or fallen. Rejects, with everything closed, when the
   * kernel cannot stand.
   */
  start (): Promise<StartedGateway>
  /** Lets running answers end up to the configured grace, then ends them. Idempotent; never rejects. */
  stop (): Promise<void>
  /** Ends the grace of a `stop` that is under way. */
  hurry (): void
  readonly report: () => readonly PluginReport[]
  /** The Fastify instance that serves, for `inject`. */
  readonly app: () => FastifyInstance
  readonly kernel: () => KernelServices
  readonly inference: () => Inference
  readonly bodies: () => BodyReads
}

/** Puts the gateway together (kernel/README.md draws it). Nothing happens before `start`. */
export function createGateway (options: GatewayOptions = {}): Gateway {
  return new GatewayRun(options)
}

class GatewayRun implements Gateway {
  readonly #options: GatewayOptions
  readonly #log: Logger
  readonly #services = new Services()
  readonly #server: HttpServer
  readonly #streams = new OpenStreams()
  #bodies: BodyReads | null = null
  #tools: Tools | null = null
  /** Aborts when a stop is asked for. */
  readonly #halt = new AbortController()
  readonly #hurried = new AbortController()
  #kernel: KernelServices | null = null
  #inference: Inference | null = null
  #host: PluginHost | null = null
  #unguard: () => void = () => {}
  /** The clock's timers do not keep the process alive; this does, from start to the end of stop. */
  #alive: NodeJS.Timeout | null = null
  #baseUrl: string | null = null
  #starting: Promise<StartedGateway> | null = null
  #stopping: Promise<void> | null = null
  #autostarted: Promise<void> = Promise.resolve()
  readonly #startedAt = new Date().toISOString()
  readonly #madeAt = performance.now()

  constructor (options: GatewayOptions) {
    const env = options.env ?? process.env
    const own = createLogger(env)
    this.#log = withShortText(options.log ?? own)
    this.#server = new HttpServer(this.#log)
    const follows = options.log === undefined && env.SVC_LOG_LEVEL === undefined
    this.#options = follows ? { setLogLevel: level => { own.level = level }, ...options } : options
  }

  readonly report = (): readonly PluginReport[] => this.#host?.list() ?? []
  readonly app = (): FastifyInstance => present(this.#host?.app)
  readonly kernel = (): KernelServices => present(this.#kernel)
  readonly inference = (): Inference => present(this.#inference)
  readonly bodies = (): BodyReads => present(this.#bodies)
  readonly hurry = (): void => this.#hurried.abort()

  start (): Promise<StartedGateway> {
    return this.#starting ??= this.#start()
  }

  stop (): Promise<void> {
    return this.#stopping ??= this.#stop()
  }

  /** Looks after every wait whether it is still to start: `stop` waits for it to give up. */
  async #start (): Promise<StartedGateway> {
    const from = performance.now()
    const goOn = (): void => this.#halt.signal.throwIfAborted()
    goOn()
    this.#alive = setInterval(() => {}, 2 ** 30)
    try {
      const clock = this.#options.clock ?? createSystemClock()
      const kernel = this.#kernel = await openKernel(this.#options, clock, this.#log, this.#halt.signal)
      goOn()
      await sweepSpool(spoolFolder(kernel.config.paths.state))
      const host = this.#host = this.#createHost(kernel)
      const inference = this.#inference = createInference(kernel, host, this.#options)
      if (this.#options.guardProcess === true) {
        this.#unguard = guardProcess({
          owner: error => host.culprits.ownerOf(error),
          blame: (name, error) => host.culprits.blame(name, error),
          fatal: error => this.#fatal(error),
          warning: warning => this.#log.warn({ err: warning }, `${warning.name}: ${warning.message}`),
          stray: reason => this.#log.error({ reason: messageOf(reason) }, 'a non-error value was thrown, or a promise was rejected with one')
        })
      }
      const check = new GatewayConfigCheck({
        ...kernel, plans: inference.plans, providers: host.providers, tools: present(this.#tools), plugins: () => host.known()
      })
      provideCore(this.#services, {
        kernel, inference, host, check,
        tools: present(this.#tools),
        installation: this.#options.installation ?? { root: packageRoot, restart: null },
        listeners: this.#server,
        info: () => this.#info(kernel)
      })
      await preparePluginHome(kernel.config.paths.plugins)
      await host.boot()
      await kernel.openDrivers(inference.drivers())
      goOn()
      await inference.gpu.open()
      await inference.fleet.start()
      inference.sets.open()
      inference.gpu.resume()
      inference.pressure.start()
      goOn()
      const baseUrl = this.#baseUrl = await this.#listen(kernel)
      const listeningMs = performance.now() - from
      // both at once: from its first moment on, callers wait for the plugins to start
      const outcomes = await Promise.allSettled([host.start(), kernel.lock.update(baseUrl)])
      goOn()
      for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
      inference.upstreams.warm()
      const { slots, gpu } = inference, isOn = this.#options.autostart !== false
      void tellFindings({ ...kernel, check, slots }, () => this.#autostarted, this.#halt.signal)
      const mayStart = (name: string): AbortSignal | null => isOn && gpu.allows(name) ? slots.selfStart(name) : null
      this.#autostarted = autostart(slots, kernel.config, mayStart, this.#halt.signal)
      return { baseUrl, info: this.#info(kernel), listeningMs }
    } catch (error) {
      await this.#shutDown()
      throw error
    }
  }

  async #listen (kernel: KernelServices): Promise<string> {
    const { server } = kernel.config.snapshot.svc
    const host = this.#options.host ?? server.host
    const port = await this.#server.listen(host, this.#options.port ?? server.port)
    const named = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
    const baseUrl = `http://${named.includes(':') ? `[${named}]` : named}:${port}`
    if (!isLoopback(host)) {
      this.#log.warn({ host, port }, `listening beyond this machine on ${host}: there is no authentication, so anyone who reaches the port can use and manage the gateway`)
    }
    return baseUrl
  }

  #createHost (kernel: KernelServices): PluginHost {
    const { config, clock, events, log } = kernel
    const bodies = this.#bodies = new BodyReads({
      clock,
      memoryBytes: config.snapshot.svc.server.body_memory_bytes,
      idleMs: () => config.snapshot.svc.server.body_idle_timeout_s * 1000
    })
    const clean = (text: string): string => config.withoutSecrets(text)
    const tools = this.#tools = new Tools({ log, clock, events, activity: kernel.activity, clean })
    tools.useAgents(createAgentFiles(config))
    return createHost({
      kernel, bodies, tools,
      options: this.#options,
      services: this.#services,
      server: this.#server,
      streams: this.#streams,
      inference: () => this.#inference,
      isStopping: () => this.#stopping !== null
    })
  }

  #info (kernel: KernelServices): GatewayInfo {
    return {
      name: 'svc', version, instance: kernel.instance, startedAt: this.#startedAt, uptimeMs: performance.now() - this.#madeAt,
      runtime: kernel.runtime.info, runtimes: kernel.runtime.views(), baseUrl: this.#baseUrl
    }
  }

  async #stop (): Promise<void> {
    this.#halt.abort(svcError('gateway.stopping', 'the gateway is shutting down'))
    this.#host?.halt()
    const isUp = await this.#starting?.then(() => true, () => false) ?? false
    // one that did not get up has cleaned up after itself
    if (isUp) await this.#shutDown()
  }

  async #shutDown (): Promise<void> {
    const closed = this.#server.close()
    const { dispatcher, fleet, gpu, pressure, sets, daemons, pulls, upstreams, connections } = this.#inference ?? {}
    // the grace begins with the stop, not with what is written about it
    const drained = dispatcher === undefined ? undefined : this.#drain(dispatcher.active)
    if (this.#kernel !== null) await this.#attempt('announcing the shutdown', noteStopping(this.#kernel.lock, this.#baseUrl ?? ''))
    await drained
    this.#streams.closeAll()
    await this.#attempt('plugins', this.#host?.stop())
    await this.#attempt('image pulls', pulls?.close())
    await this.#attempt('daemons', daemons?.close(form => this.#stopsForm(form)))
    upstreams?.close()
    gpu?.halt()
    pressure?.halt()
    sets?.close()
    await this.#attempt('slots', fleet?.close(name => !this.#stopsEngine(name)))
    await this.#attempt('GPU arbiter', gpu?.close())
    await this.#attempt('memory pressure', pressure?.close())
    await this.#autostarted
    this.#inference?.unsubscribe()
    this.#server.closeAll()
    await closed
    this.#bodies?.close()
    await this.#attempt('connections', connections?.close())
    if (this.#kernel !== null) await this.#attempt('kernel', closeKernel(this.#kernel))
    this.#unguard()
    if (this.#alive !== null) clearInterval(this.#alive)
  }

  #drain (active: Inference['dispatcher']['active']): Promise<void> {
    const { clock, config, log } = this.#kernel!
    const graceMs = config.snapshot.svc.server.shutdown_grace_s * 1000
    return drainRequests({ clock, log, active, graceMs, hurried: this.#hurried.signal })
  }

  /** A container is found again by the next gateway, a child process ends with its parent; unless it is said otherwise. */
  #stopsEngine (name: string): boolean {
    const slot = this.#kernel!.config.snapshot.slots.get(replicaPlace(name).slot)
    return this.#stopsForm(slot === undefined ? this.#kernel!.runtime.form : this.#inference!.plans.form(slot))
  }

  #stopsForm (form: EngineForm): boolean {
    return this.#options.stopEngines ?? this.#kernel!.config.snapshot.svc.runtime.stop_with_gateway ?? form === 'process'
  }

  async #attempt (what: string, work: Promise<void> | undefined): Promise<void> {
    try {
      await work
    } catch (error) {
      this.#log.error({ err: error }, `${what} did not stop cleanly: ${messageOf(error)}`)
    }
  }

  /** A defect of the gateway itself: nothing can be trusted any more. Engines stay and are adopted by the next run. */
  #fatal (error: unknown): void {
    this.#log.error({ err: error }, 'fatal: an unhandled error')
    process.exitCode = 70
    setImmediate(() => process.exit(70))
  }
}

function present<T> (value: T | null | undefined): T {
  if (value === null || value === undefined) throw new Error('the gateway has not been started')
  return value
}
