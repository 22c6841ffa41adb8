import { pause, type Clock, type DaemonService, type ServiceDescriptor, type ServiceVerb } from 'svc-gateway/plugin'
import type { ServiceInstaller } from './installer.js'
import type { KeptServices } from './kept.js'
import type { Probed } from './probe.js'
import type { ProgramForm, ServiceForm, ServiceRunner } from './ref.js'
import { verbTimeoutMs } from './systemd.js'
import { programOf, type WorldDeps } from './world.js'

export interface OwnProgramDeps extends WorldDeps {
  readonly clock: Clock
  readonly daemons: DaemonService
  readonly kept: KeptServices
  readonly signal: AbortSignal
}

/** What is known of services in whatever form. */
export interface ServiceKnowledge {
  readonly installer: ServiceInstaller
  readonly probe: (service: ServiceDescriptor) => Promise<Probed>
  /** The plugin that installs and runs it in place of the gateway. */
  readonly runnerOf: (service: ServiceDescriptor) => ServiceRunner | undefined
}

export interface ProgramOutcome {
  readonly ok: boolean
  readonly active: boolean
  readonly message: string
}

const LOOK_EVERY_MS = 200

/** Services as programs of the gateway's own: packages in environments, and containers. */
export class OwnPrograms {
  readonly #deps: OwnProgramDeps
  readonly #knowledge: ServiceKnowledge

  constructor (deps: OwnProgramDeps, knowledge: ServiceKnowledge) {
    this.#deps = deps
    this.#knowledge = knowledge
  }

  /** Rejects with what keeps the verb from being done. */
  async act (service: ServiceDescriptor, verb: ServiceVerb, form: ServiceForm | null): Promise<ProgramOutcome> {
    const { daemons, kept, signal } = this.#deps
    const { installer } = this.#knowledge
    const { id, name } = service
    if (verb === 'stop') {
      await daemons.end(id)
      return { ok: true, active: false, message: `${name} is not running` }
    }
    if (verb === 'disable') {
      kept.change(id, { enabled: false })
      return { ok: true, active: this.runs(service), message: `${name} does not start with the gateway` }
    }
    if (form !== 'python' && form !== 'container') throw await this.#absent(service)
    const isNew = kept.get(id).form === null
    const told = isNew ? (await (await installer.begin(service, form)).done).settings : await installer.prepare(service)
    const also = told.length === 0 ? '' : `; svc.toml now sets ${told.join(' and ')} for it`
    if (verb === 'enable') {
      kept.change(id, { enabled: true })
      return { ok: true, active: this.runs(service), message: `${name} starts with the gateway${also}` }
    }
    if (verb === 'restart') await daemons.end(id)
    await this.launch(service, form, signal)
    const problem = await this.#untilUp(service, verbTimeoutMs[verb])
    return { ok: problem === null, active: this.runs(service), message: problem ?? `${name} answers${also}` }
  }

  /** Makes sure that it runs, and waits for nothing to answer. */
  async launch (service: ServiceDescriptor, form: ProgramForm, signal: AbortSignal): Promise<void> {
    const { daemons, kept } = this.#deps
    await daemons.run(await programOf(this.#deps, service, form, kept.get(service.id)), { signal })
  }

  runs ({ id }: ServiceDescriptor): boolean {
    return this.#deps.daemons.status(id).state === 'running'
  }

  /** Null once it answers; otherwise why it does not. */
  async #untilUp (service: ServiceDescriptor, withinMs: number): Promise<string | null> {
    const { clock, daemons, signal } = this.#deps
    const until = clock.monotonic() + withinMs
    for (;;) {
      const { up, detail } = await this.#knowledge.probe(service)
      if (up) return null
      const { state, problem } = daemons.status(service.id)
      if (state !== 'running') return problem ?? `${service.name} is not running`
      if (clock.monotonic() > until) return `${service.name} is running but does not answer yet: ${detail}`
      signal.throwIfAborted()
      await pause(clock, LOOK_EVERY_MS, signal)
    }
  }

  async #absent (service: ServiceDescriptor): Promise<Error> {
    const { installer, runnerOf } = this.#knowledge
    const { id, name, unit } = service
    const canBring = service.python !== undefined || service.container !== undefined
    const systemd = `systemd has no unit ${unit}`
    const runner = runnerOf(service)
    if (runner !== undefined) return new Error(`${name} is not installed: ${systemd}; \`${runner.brings}\` brings it`)
    if (!canBring) return new Error(`${name} is not installed: ${systemd}`)
    const forms = await installer.forms(service)
    return new Error(forms.length > 0
      ? `${name} is not installed: \`svc service install ${id}\` brings it`
      : `${name} is not installed, and there is neither a suitable Python nor a container engine`)
  }
}
