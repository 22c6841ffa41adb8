import { createHash, randomBytes } from 'node:crypto'
import {
  canonicalJson, messageOf, redactLine, svcError, type CleanText, type Clock, type EventBus, type Logger, type DaemonOptions,
  type DaemonService, type DaemonSpec, type DaemonStatus, type Timer
} from '../../contract/index.js'
import { backoffMs, crashAttempts } from '../../async/backoff.js'
import { SerialQueue } from '../../async/serial-queue.js'
import {
  LABEL_CONFIG, LABEL_INSTANCE, LABEL_DAEMON, type ContainerRuntime, type EngineExit, type EngineForm, type EngineInspection,
  type EngineSpec
} from '../../contract/provider/engine-runtime.js'

export interface DaemonsDeps {
  readonly runtime: ContainerRuntime
  readonly instance: string
  readonly clock: Clock
  readonly events: EventBus
  readonly log: Logger
  readonly clean: CleanText
}

/** One program, from the first time it was asked for or found. Its steps come one after the other. */
interface Member {
  readonly id: string
  readonly turns: SerialQueue
  /** What it is to run; null once it was ended. */
  wanted: DaemonSpec | null
  engine: { readonly id: string, readonly form: EngineForm, readonly startedAt: number | null, readonly seenAt: number } | null
  /** The last engine, for its output after its end. */
  last: string | null
  failures: number
  exitCode: number | null
  problem: string | null
  retry: Timer | null
  /** Ends a restart under way, which may pull its image for as long as that takes; null if there is none. */
  restarting: AbortController | null
}

const STOP_S = 20

/** Runs and supervises programs over the runtime of the slots. */
export class Daemons implements DaemonService {
  readonly #deps: DaemonsDeps
  readonly #members = new Map<string, Member>()
  readonly #listeners = new Set<(id: string) => void>()
  readonly #unwatch: () => void
  #closing = false

  constructor (deps: DaemonsDeps) {
    this.#deps = deps
    this.#unwatch = deps.runtime.onExit(deps.instance, exit => this.#ended(exit))
  }

  get hasContainers (): boolean {
    return this.#deps.runtime.form === 'container'
  }

  async found (): Promise<readonly string[]> {
    const engines = await this.#deps.runtime.list({ [LABEL_INSTANCE]: this.#deps.instance })
    return [...new Set(engines.flatMap(({ labels, state }) => state === 'running' ? labels[LABEL_DAEMON] ?? [] : []))]
  }

  async fetch (image: string, { signal, onMessage }: DaemonOptions): Promise<void> {
    const { runtime } = this.#deps
    if (!this.hasContainers) throw svcError('runtime.unavailable', 'no container engine answers here')
    if (await runtime.imagePresent(image, null, signal)) return
    onMessage?.(`pulling ${image}`)
    await runtime.pull(image, null, ({ layer, totalLayers }) => onMessage?.(`pulling ${image}: ${layer} of ${totalLayers} layers`), signal)
  }

  run (spec: DaemonSpec, options: DaemonOptions): Promise<void> {
    const member = this.#member(spec.id)
    member.restarting?.abort()
    return member.turns.run(async () => {
      if (this.#closing) throw svcError('gateway.stopping', 'the gateway is shutting down')
      this.#forget(member)
      // what it replaces does not end by itself, and is not started again
      Object.assign(member, { wanted: null, failures: 0, exitCode: null, problem: null })
      await this.#bringUp(member, spec, options)
      member.wanted = spec
      this.#changed(member)
    })
  }

  end (id: string): Promise<void> {
    const member = this.#member(id)
    member.restarting?.abort()
    return member.turns.run(async () => {
      this.#forget(member)
      member.wanted = null
      Object.assign(member, { failures: 0, exitCode: null, problem: null })
      await this.#clear(id)
      member.engine = null
      this.#changed(member)
    })
  }

  status (id: string): DaemonStatus {
    const { engine, wanted, failures, exitCode, problem } = this.#members.get(id) ?? newMember(id)
    const state = engine !== null ? 'running' : wanted !== null ? 'waiting' : 'stopped'
    const form = engine?.form ?? wanted?.form.kind ?? null
    return { state, form, since: engine?.startedAt ?? null, failures, exitCode, problem }
  }

  async* logs (id: string, options: Parameters<DaemonService['logs']>[1]): AsyncIterable<string> {
    const { runtime, clean } = this.#deps
    const engine = this.#members.get(id)?.last ?? (await this.#list(id))[0]?.id
    if (engine === undefined) return
    try {
      for await (const line of runtime.logs(engine, options)) yield redactLine(clean(line))
    } catch (error) {
      if ((error as { code?: string }).code !== 'runtime.not_found') throw error
    }
  }

  onChange (listener: (id: string) => void): () => void {
    this.#listeners.add(listener)
    return () => { this.#listeners.delete(listener) }
  }

  /** Nothing is supervised from here on. Programs of a form that does not stop go on. */
  async close (stops: (form: EngineForm) => boolean): Promise<void> {
    this.#closing = true
    this.#unwatch()
    await Promise.all([...this.#members.values()].map(member => {
      member.restarting?.abort()
      return member.turns.run(async () => {
        this.#forget(member)
        const { engine } = member
        if (engine === null || !stops(engine.form)) return
        await this.#deps.runtime.stop(engine.id, STOP_S)
        await this.#deps.runtime.remove(engine.id)
      })
    }))
  }

  async #bringUp (member: Member, spec: DaemonSpec, options: DaemonOptions): Promise<void> {
    const { signal } = options
    const { runtime } = this.#deps
    const engine = this.#engineSpec(spec)
    const fitting = (await this.#list(spec.id)).find(found => this.#fits(found, engine))
    await this.#clear(spec.id, fitting?.id)
    if (fitting !== undefined) return this.#has(member, fitting)
    if (spec.form.kind === 'container') await this.fetch(spec.form.image, options)
    await runtime.assertPortFree?.(engine)
    let id: string | null = null
    try {
      id = await runtime.create(engine, signal)
      member.last = id
      await runtime.start(id, signal)
      const found = await runtime.inspect(id)
      if (found === null) throw svcError('runtime.failed', `${spec.id} exited right after its start`)
      this.#has(member, found)
    } catch (error) {
      if (id !== null) await runtime.remove(id).catch(() => undefined)
      throw error
    }
  }

  /** An engine that had ended by the time it was looked at counts: its end is told of. */
  #has (member: Member, { id, startedAt, state }: EngineInspection): void {
    const form = id.startsWith('proc-') || this.#deps.runtime.form === 'process' ? 'process' : 'container'
    member.last = id
    member.engine = state === 'exited' ? null : { id, form, startedAt, seenAt: this.#deps.clock.monotonic() }
    if (state === 'exited') throw svcError('runtime.failed', `${member.id} exited right after its start; see \`svc service logs ${member.id}\``)
  }

  #fits ({ labels, state }: EngineInspection, wanted: EngineSpec): boolean {
    return state === 'running' && labels[LABEL_CONFIG] === wanted.labels[LABEL_CONFIG]
  }

  #ended ({ id, exitCode }: EngineExit): void {
    const member = [...this.#members.values()].find(({ engine }) => engine?.id === id)
    if (member === undefined || this.#closing) return
    const { clock, log, events } = this.#deps
    const { seenAt } = member.engine!
    member.engine = null
    if (member.wanted === null) return
    member.failures = crashAttempts({ attempts: member.failures }, seenAt, clock.monotonic())
    member.exitCode = exitCode
    const message = `${member.id} exited${exitCode === null ? '' : ` with ${exitCode}`}; see \`svc service logs ${member.id}\``
    member.problem = message
    log.warn({ program: member.id, exitCode }, message)
    events.emit({ type: 'services.ended', severity: 'warn', source: `service:${member.id}`, message, data: { service: member.id, exit_code: exitCode } })
    this.#again(member)
  }

  #again (member: Member): void {
    const { clock, log } = this.#deps
    member.retry = clock.setTimer(backoffMs(member.failures), () => {
      member.retry = null
      void member.turns.run(async () => {
        const { wanted } = member
        if (wanted === null || member.engine !== null || this.#closing) return
        const { signal } = member.restarting = new AbortController()
        try {
          await this.#bringUp(member, wanted, { signal })
        } catch (error) {
          if (signal.aborted) return
          member.failures++
          member.problem = messageOf(error)
          log.warn({ program: member.id }, `${member.id} cannot be restarted: ${member.problem}`)
          this.#again(member)
        } finally {
          member.restarting = null
        }
        this.#changed(member)
      })
    })
    this.#changed(member)
  }

  /** Removes engines of a program but one. */
  async #clear (id: string, but?: string): Promise<void> {
    const { runtime } = this.#deps
    for (const found of await this.#list(id)) {
      if (found.id === but) continue
      await runtime.stop(found.id, STOP_S)
      await runtime.remove(found.id)
    }
  }

  #list (id: string): Promise<readonly EngineInspection[]> {
    return this.#deps.runtime.list({ [LABEL_INSTANCE]: this.#deps.instance, [LABEL_DAEMON]: id })
  }

  #engineSpec (spec: DaemonSpec): EngineSpec {
    const { id, host, port, env, form } = spec
    const { instance } = this.#deps
    const hash = createHash('sha256').update(canonicalJson(spec)).digest('hex').slice(0, 16)
    return {
      name: `svc-${instance.slice(0, 8)}-${id}-${randomBytes(3).toString('hex')}`,
      labels: { [LABEL_INSTANCE]: instance, [LABEL_DAEMON]: id, [LABEL_CONFIG]: hash },
      env,
      port,
      form: form.kind === 'process'
        ? { kind: 'process', command: form.command, args: form.args, workingDir: form.workingDir, bindHost: host, label: id }
        : {
            kind: 'container',
            image: form.image,
            digest: null,
            entrypoint: null,
            command: form.command ?? [],
            mounts: form.mounts,
            devices: [],
            cdiDevices: [],
            groups: [],
            network: 'host',
            publishHost: null,
            ipc: 'private',
            shmSizeBytes: null,
            ulimits: {},
            securityOpts: [],
            workingDir: null
          }
    }
  }

  #forget (member: Member): void {
    member.retry?.cancel()
    member.retry = null
  }

  #member (id: string): Member {
    const known = this.#members.get(id) ?? newMember(id)
    this.#members.set(id, known)
    return known
  }

  #changed ({ id }: Member): void {
    for (const listener of [...this.#listeners]) listener(id)
  }
}

function newMember (id: string): Member {
  const nothing = { wanted: null, engine: null, last: null, exitCode: null, problem: null, retry: null, restarting: null }
  return { id, turns: new SerialQueue(), failures: 0, ...nothing }
}
