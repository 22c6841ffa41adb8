import { statfs } from 'node:fs/promises'
import { messageOf, shellText, type Clock, type DaemonService, type PythonProgram, type ServiceDescriptor } from 'svc-gateway/plugin'
import { refuseLink, removeFolder, type Remains } from './data-folder.js'
import { servicesError } from './errors.js'
import type { KeptServices } from './kept.js'
import { findPython, installPython, noPython, sweepEnvironments } from './python-env.js'
import type { InstallForm, InstallStatus } from './ref.js'
import { bringSlot, slotMisfit, slotOf, takeSlot } from './slot-form.js'
import { folderOf, missingSlot, mustHaveSlots, usualNames, type WorldDeps } from './world.js'

export interface InstallerDeps extends WorldDeps {
  readonly clock: Clock
  readonly daemons: DaemonService
  readonly kept: KeptServices
  /** Aborts when the plugin goes. */
  readonly signal: AbortSignal
  /** Of programs that install. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Whether anything may be brought from a registry. */
  readonly downloads: boolean
}

/** One installation, under way or over. */
interface Work { status: InstallStatus, done: Promise<InstallStatus> }

interface PythonLook { readonly found: Promise<string | null>, goodUntilMs: number }

/** What a look for a Python is good for: it takes as long as the start of several. */
const LOOKED_MS = 60_000
/** One that found none: it may have been too slow to answer, or has been installed since. */
const MISSED_MS = 5_000
/** Beside what is installed: what is unpacked on the way. */
const ROOM = 1.3

/** Brings services to this machine and takes them away. */
export class ServiceInstaller {
  readonly #deps: InstallerDeps
  readonly #works = new Map<string, Work>()
  /** By the versions that will do. */
  readonly #looks = new Map<string, PythonLook>()

  constructor (deps: InstallerDeps) {
    this.#deps = deps
  }

  /** In which forms it could be brought here, best first, as of a minute ago; none where nothing may be. */
  async forms (service: ServiceDescriptor): Promise<readonly InstallForm[]> {
    const { daemons, downloads } = this.#deps
    const { python, container, slotOffer } = service
    const forms: InstallForm[] = []
    if (!downloads || missingSlot(this.#deps, service) !== undefined) return forms
    if (slotOffer !== undefined && await slotMisfit(this.#deps, service) === null) forms.push('slot')
    if (python !== undefined && await this.#pythonFor(python) !== null) forms.push('python')
    if (container !== undefined && daemons.hasContainers) forms.push('container')
    return forms
  }

  status (service: ServiceDescriptor): InstallStatus {
    const { id, slot } = service
    const work = this.#works.get(id)
    if (work !== undefined && work.status.state !== 'installed') return work.status
    if (slot !== undefined) return slotStatus(slotOf(this.#deps, service))
    const { form, version } = this.#deps.kept.get(id)
    return { state: form === null ? 'absent' : 'installed', form, version, message: '', settings: work?.status.settings ?? [] }
  }

  /** Resolves when nothing is installed for it any more, however that ended. */
  async settled ({ id }: ServiceDescriptor): Promise<void> {
    await this.#works.get(id)?.done.catch(() => undefined)
  }

  /**
   * Begins an installation, or joins the one that is under way; `done` rejects with what goes wrong. Throws
   * `services.cannot_install` where there is nothing to begin.
   */
  async begin (service: ServiceDescriptor, wanted?: InstallForm): Promise<{ readonly done: Promise<InstallStatus> }> {
    const { id, python } = service
    const form = await this.#formFor(service, wanted)
    const under = this.#works.get(id)
    if (under?.status.state === 'installing') return { done: under.done }
    const version = form === 'python' ? python!.version : null
    const status: InstallStatus = { state: 'installing', form, version, message: 'it begins', settings: [] }
    const work: Work = { status, done: Promise.resolve(status) }
    this.#works.set(id, work)
    work.done = this.#bring(service, form, message => { work.status = { ...status, message } }).then(settings => {
      work.status = { state: 'installed', form, version, message: '', settings }
      return this.status(service)
    }, (error: unknown) => {
      work.status = { ...status, state: 'failed', message: messageOf(error) }
      throw error
    })
    work.done.catch(() => undefined) // told by the status as well
    return { done: work.done }
  }

  /** Throws `services.data_left` once all else is gone. */
  async remove (service: ServiceDescriptor, withData: boolean): Promise<void> {
    const { id, name, slot } = service
    const remove = slot === undefined ? this.#removeProgram(service, withData) : takeSlot(this.#deps, service, withData)
    const remains = await remove
    this.#deps.kept.forget(id)
    this.#works.delete(id)
    if (remains === null) return
    const { folder } = remains
    const command = `sudo ${shellText(['rm', '-rf', '--', folder])}`
    throw servicesError('services.data_left', `${name} is uninstalled, but the gateway's user may not delete all of its data (${remains.count} left; ${messageOf(remains.first)}): ${command}`,
      { details: { service: id, folder, left: remains.count, command } })
  }

  async #removeProgram (service: ServiceDescriptor, withData: boolean): Promise<Remains | null> {
    const folder = folderOf(this.#deps, service.id)
    if (withData) await refuseLink(folder, service)
    await sweepEnvironments(folder, null)
    return withData ? await removeFolder(folder) : null
  }

  /** Environments that no program needs any more. */
  async sweep ({ id }: ServiceDescriptor): Promise<void> {
    await sweepEnvironments(folderOf(this.#deps, id), this.#deps.kept.get(id).environment)
  }

  /** Sets the gateway as the service wishes, once. Gives what was changed: `dispatcher.show_loading = true`. */
  async prepare ({ id, settings = [] }: ServiceDescriptor): Promise<readonly string[]> {
    const { kept, config } = this.#deps
    if (kept.get(id).prepared) return []
    const missing = settings.filter(({ key, value }) => settingOf(config.snapshot.svc, key) !== value)
    if (missing.length > 0) {
      const tables: Record<string, Record<string, unknown>> = {}
      for (const { key, value } of missing) {
        const [table = '', name = ''] = key.split('.')
        tables[table] = { ...tables[table], [name]: value }
      }
      await config.patchSvc(tables)
    }
    kept.change(id, { prepared: true })
    return missing.map(({ key, value }) => `${key} = ${JSON.stringify(value)}`)
  }

  async #bring (service: ServiceDescriptor, form: InstallForm, tell: (message: string) => void): Promise<readonly string[]> {
    const { kept, daemons, signal, env, config } = this.#deps
    const { id, python, container } = service
    if (form === 'slot') {
      await bringSlot(this.#deps, service, tell)
    } else if (form === 'container') {
      await daemons.fetch(container!.image, { signal, onMessage: tell })
      kept.change(id, { form, version: null, environment: null })
    } else {
      const environment = await installPython(python!, {
        folder: folderOf(this.#deps, id), env, signal, clean: text => config.withoutSecrets(text), onMessage: tell
      })
      kept.change(id, { form, version: python!.version, environment })
    }
    return await this.prepare(service)
  }

  #pythonFor ({ pythons }: PythonProgram): Promise<string | null> {
    const { clock, env } = this.#deps
    const key = pythons.join()
    const known = this.#looks.get(key)
    if (known !== undefined && clock.monotonic() < known.goodUntilMs) return known.found
    const found = findPython({ pythons }, env).then(python => {
      if (python === null) look.goodUntilMs = clock.monotonic() + MISSED_MS
      return python
    })
    const look: PythonLook = { found, goodUntilMs: clock.monotonic() + LOOKED_MS }
    this.#looks.set(key, look)
    return found
  }

  /** What was asked for, else the best there is. Throws `services.cannot_install`. */
  async #formFor (service: ServiceDescriptor, wanted?: InstallForm): Promise<InstallForm> {
    const { downloads, config: { paths } } = this.#deps
    const { id, name, python, container, slot, unit, slotOffer } = service
    const cannot = (why: string): Error => servicesError('services.cannot_install', why, { details: { service: id } })
    if (slot !== undefined && slotOffer === undefined) throw cannot(`${name} runs as a slot: create one with \`svc slot create ${usualNames[slot]} --type ${slot}\``)
    if (slot === undefined && python === undefined && container === undefined) throw cannot(`${name} is not installed by the gateway; once ${unit} exists, the gateway manages it`)
    mustHaveSlots(this.#deps, service)
    if (!downloads) throw cannot('downloads from registries are disabled: `downloads` is off in [plugins.config.api-services]')
    if (slotOffer !== undefined) {
      if (wanted !== undefined && wanted !== 'slot') throw cannot(`${name} runs only as a slot`)
      const misfit = await slotMisfit(this.#deps, service)
      if (misfit !== null) throw cannot(`${name} cannot run as a slot here: ${misfit}`)
      return 'slot'
    }
    // what was missing may have been installed just now
    this.#looks.clear()
    const forms = await this.forms(service)
    const form = wanted ?? forms[0]
    if (form === undefined || !forms.includes(form)) {
      if (form !== 'container' && python !== undefined) throw noPython(python)
      throw cannot(container === undefined ? `${name} is not available as a container` : 'no container engine answers here; `svc status` says why')
    }
    const bytes = bytesOf(service, form)
    if (form === 'python' && bytes !== null) {
      const { bavail, bsize } = await statfs(paths.state)
      if (bavail * bsize < bytes * ROOM) throw cannot(`${name} needs ${gigabytes(bytes * ROOM)} GB on the disk of ${paths.state}, and ${gigabytes(bavail * bsize)} GB are free`)
    }
    return form
  }
}

/** Disk that a service takes in a form; null if unknown. */
export function bytesOf ({ python, container, slotOffer }: ServiceDescriptor, form: InstallForm): number | null {
  return { python, container, slot: slotOffer }[form]?.bytes ?? null
}

function slotStatus (name: string | null): InstallStatus {
  if (name === null) return { state: 'absent', form: null, version: null, message: '', settings: [] }
  return { state: 'installed', form: 'slot', version: null, message: `it is slot ${name}, which is loaded on request`, settings: [] }
}

function settingOf (svc: object, key: string): unknown {
  return key.split('.').reduce<unknown>((table, name) => (table as Record<string, unknown> | undefined)?.[name], svc)
}

function gigabytes (bytes: number): string {
  return (bytes / 1e9).toFixed(1)
}
