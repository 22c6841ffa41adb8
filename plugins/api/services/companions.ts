import {
  messageOf, SerialQueue, stateWords, type Clock, type Logger, type ServiceCatalog, type ServiceDescriptor, type ServiceVerb
} from 'svc-gateway/plugin'
import { servicesError } from './errors.js'
import { bytesOf, ServiceInstaller, type InstallerDeps } from './installer.js'
import { OwnPrograms, type ProgramOutcome } from './own-programs.js'
import { probe, type Probed } from './probe.js'
import type { Companions, FindRunner, InstallForm, InstallStatus, ServiceForm, ServiceOffer, ServiceRunner } from './ref.js'
import type { Systemd, UnitState, VerbOutcome } from './systemd.js'
import { slotOf } from './slot-form.js'
import { placeOf, usualNames } from './world.js'

export interface CompanionDeps extends InstallerDeps {
  readonly catalog: ServiceCatalog
  readonly systemd: Systemd
  readonly runners: readonly FindRunner[]
  readonly clock: Clock
  readonly log: Logger
}

export interface ActionOutcome extends VerbOutcome {
  readonly active: boolean
}

/** The services that plugins describe: how each runs on this machine, and its verbs. */
export class ServiceManager implements Companions {
  readonly installer: ServiceInstaller
  readonly #deps: CompanionDeps
  readonly #programs: OwnPrograms
  readonly #turns = new Map<string, SerialQueue>()

  constructor (deps: CompanionDeps) {
    this.#deps = deps
    this.installer = new ServiceInstaller(deps)
    const { installer } = this
    this.#programs = new OwnPrograms(deps, {
      installer, probe: service => this.probe(service), runnerOf: service => this.runnerOf(service)
    })
  }

  /** Takes over what an earlier gateway left running, and starts what is enabled. Waits for nothing to answer. */
  async start (signal: AbortSignal): Promise<void> {
    const { daemons, catalog, kept, log } = this.#deps
    const running = new Set(await daemons.found())
    // what other plugins run beside the gateway is theirs
    for (const id of running) if (catalog.get(id) === undefined && kept.get(id).form !== null) await daemons.end(id)
    const wanted = catalog.list().flatMap(service => {
      const { enabled, form } = kept.get(service.id)
      return form !== null && (enabled || running.has(service.id)) ? [{ service, form }] : []
    })
    // a start of the gateway waits for this: where nothing is wanted, the service manager is not asked
    if (wanted.length === 0) return
    const units = await this.units()
    for (const { service, form } of wanted) {
      if (units.has(service.unit)) continue
      await this.#programs.launch(service, form, signal).catch((error: unknown) => {
        log.warn({ service: service.id }, `${service.name} could not be started: ${messageOf(error)}`)
      })
    }
  }

  /** Throws `services.unknown`. */
  get (id: string): ServiceDescriptor {
    const { catalog } = this.#deps
    const service = catalog.get(id)
    if (service !== undefined) return service
    const known = catalog.list().map(each => each.id)
    throw servicesError('services.unknown', `there is no service '${id}'; there are ${known.join(', ') || 'none'}`, { details: { service: id, known } })
  }

  list (): readonly ServiceDescriptor[] {
    return this.#deps.catalog.list()
  }

  units (): Promise<ReadonlyMap<string, UnitState>> {
    return this.#deps.systemd.units(this.list().map(({ unit }) => unit))
  }

  /** How a service runs here, or would if it were started; null when it has to be brought first, or cannot be. */
  formOf (service: ServiceDescriptor, units: ReadonlyMap<string, UnitState>): ServiceForm | null {
    const { kept, daemons } = this.#deps
    if (service.slot !== undefined) return 'slot'
    if (units.has(service.unit)) return 'unit'
    if (this.runnerOf(service)?.installed() != null) return 'agent'
    return kept.get(service.id).form ?? (service.container !== undefined && daemons.hasContainers ? 'container' : null)
  }

  /** Id of its program among those that the gateway runs. */
  daemonOf (service: ServiceDescriptor): string {
    return this.runnerOf(service)?.daemon ?? service.id
  }

  /** The plugin that installs and runs it; undefined for what this one does. */
  runnerOf ({ id }: ServiceDescriptor): ServiceRunner | undefined {
    for (const find of this.#deps.runners) {
      const runner = find(id)
      if (runner !== undefined) return runner
    }
    return undefined
  }

  /** The first enabled slot that it runs as; null where it is no slot, or there is none. */
  slotOf (service: ServiceDescriptor): string | null {
    return slotOf(this.#deps, service)
  }

  /** Where it listens: a slot where its engine does, or is to. */
  portOf (service: ServiceDescriptor): number {
    const { slots } = this.#deps
    const own = this.slotOf(service)
    const port = own === null ? undefined : slots.status(own).address?.port ?? slots.config(own).port
    return port ?? placeOf(this.#deps, service).port
  }

  /** Asks it how it is. Never rejects. */
  async probe (service: ServiceDescriptor): Promise<Probed> {
    const { config, slots } = this.#deps
    const looked = await service.look?.() ?? null
    if (looked !== null) return looked
    const replaced = service.probeUrlVariable === undefined ? undefined : config.secret(service.probeUrlVariable)
    if (service.slot === undefined || replaced !== undefined) {
      const { host, port } = placeOf(this.#deps, service)
      const reached = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '[::1]' : host.includes(':') ? `[${host}]` : host
      return await probe(service, `http://${reached}:${port}`, replaced)
    }
    const own = this.slotOf(service)
    if (own === null) return { up: false, detail: `no slot of type ${service.slot} is enabled`, stat: null }
    const { address, state } = slots.status(own)
    if (address === null) return { up: false, detail: `slot ${own} is ${stateWords(state)}`, stat: null }
    return await probe(service, `http://${address.host}:${address.port}`)
  }

  /** Throws `services.unknown`; what goes wrong with the verb itself is an outcome. */
  async act (id: string, verb: ServiceVerb): Promise<ActionOutcome> {
    const service = this.get(id)
    return await this.#inTurn(id, async () => {
      const form = this.formOf(service, await this.units())
      try {
        if (form === 'unit') return await this.#actOnUnit(service, verb)
        const done = form === 'slot' ? await this.#actOnSlot(service, verb)
          : form === 'agent' ? await this.#actOnAgent(service, verb)
            : await this.#programs.act(service, verb, form)
        return { ...done, problem: done.ok ? null : 'failed' }
      } catch (error) {
        return { ok: false, active: this.#runs(service), message: messageOf(error), problem: 'failed' }
      }
    })
  }

  async offers (): Promise<readonly ServiceOffer[]> {
    return await Promise.all(this.list().map(async service => {
      const forms = await this.installer.forms(service)
      const bytes = forms[0] === undefined ? null : bytesOf(service, forms[0])
      return { service, forms, bytes, installed: this.installer.status(service).form !== null }
    }))
  }

  async begin (id: string, form?: InstallForm): Promise<{ readonly done: Promise<InstallStatus> }> {
    const service = this.get(id)
    const { done } = await this.installer.begin(service, form)
    return { done: done.then(status => this.#takeUp(service, status)) }
  }

  async install (id: string, form?: InstallForm): Promise<InstallStatus> {
    return await (await this.begin(id, form)).done
  }

  async bringUp (id: string): Promise<string | null> {
    // its engine would take the GPU from the others
    if (this.get(id).slot !== undefined) return 'it is a slot, which is loaded on request'
    for (const verb of ['enable', 'start'] as const) {
      const { ok, message } = await this.act(id, verb)
      if (!ok) return message
    }
    return null
  }

  /** What runs already goes on with what was installed. */
  async #takeUp (service: ServiceDescriptor, status: InstallStatus): Promise<InstallStatus> {
    await this.#inTurn(service.id, async () => {
      if (status.form !== 'slot' && this.#runs(service)) await this.#programs.launch(service, status.form!, this.#deps.signal)
      await this.installer.sweep(service)
    })
    return status
  }

  /** Ends it and takes it away; its data stays unless told otherwise. */
  async uninstall (id: string, withData: boolean): Promise<void> {
    const service = this.get(id)
    await this.#inTurn(id, async () => {
      await this.#deps.daemons.end(id)
      await this.installer.remove(service, withData)
    })
  }

  async #actOnUnit ({ unit }: ServiceDescriptor, verb: ServiceVerb): Promise<ActionOutcome> {
    const { systemd } = this.#deps
    const outcome = await systemd.verb(verb, unit)
    return { ...outcome, active: await systemd.isActive(unit) }
  }

  async #actOnSlot (service: ServiceDescriptor, verb: ServiceVerb): Promise<ProgramOutcome> {
    const { slots } = this.#deps
    const own = this.slotOf(service)
    if (own === null) throw new Error(`${service.name} runs as a slot, and there is none: create one with \`svc slot create ${usualNames[service.slot!]} --type ${service.slot!}\``)
    if (verb === 'stop') await slots.unload(own)
    else if (verb === 'restart') await slots.restart(own)
    else await slots.load(own)
    return { ok: true, active: verb !== 'stop', message: `${verb} of slot ${own} is done` }
  }

  async #actOnAgent (service: ServiceDescriptor, verb: ServiceVerb): Promise<ProgramOutcome> {
    const message = await this.runnerOf(service)!.act(verb)
    return { ok: true, active: this.#runs(service), message }
  }

  #runs (service: ServiceDescriptor): boolean {
    return this.#deps.daemons.status(this.daemonOf(service)).state === 'running'
  }

  /** Verbs of one service come one after the other, and after its installation. */
  #inTurn<T> (id: string, work: () => Promise<T>): Promise<T> {
    const line = this.#turns.get(id) ?? new SerialQueue()
    this.#turns.set(id, line)
    return line.run(async () => {
      await this.installer.settled(this.get(id))
      return await work()
    })
  }
}
