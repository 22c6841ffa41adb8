import { access, mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { hostname, networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { messageOf, type ConfigService, type Logger, type ServiceDescriptor } from 'svc-gateway/plugin'
import { Responder } from './responder.js'
import type { Systemd } from './systemd.js'
import { placeOf, type ServiceSettings } from './world.js'

const USUAL_FOLDER = '/etc/avahi/services'
/** The gateway's own, which an installation brings and nothing here touches. */
const BASE = 'svc.service'
const OURS = /^svc-addon-([a-z][a-z0-9-]*)\.service$/

export interface Announced {
  readonly available: boolean
  readonly hostname: string
  readonly base_advertised: boolean
  readonly advertised: string[]
}

export interface AnnouncementDeps {
  readonly config: ConfigService
  readonly systemd: Systemd
  readonly settings: Readonly<Record<string, ServiceSettings>>
  readonly log: Logger
  /** Network interfaces that the gateway announces on; null for those that the machine is known by. */
  readonly interfaces: readonly string[] | null
}

interface Begun { readonly told: string | null | Promise<string | null> }

/**
 * Where an avahi daemon runs, its service files, one for each service that is announced; files that are not ours stay as
 * they are. Elsewhere the gateway answers the network itself.
 */
export class Announcements {
  readonly #deps: AnnouncementDeps
  readonly #responder: Responder
  #begun: Promise<unknown> = Promise.resolve()

  constructor (deps: AnnouncementDeps) {
    this.#deps = deps
    this.#responder = new Responder(deps.log, () => ({ hostname: this.hostname, interfaces: deps.interfaces }))
  }

  get hostname (): string {
    const name = this.#deps.config.secret('SVC_HOSTNAME') ?? hostname()
    return name.endsWith('.local') ? name : `${name.split('.', 1)[0]!}.local`
  }

  /** Never rejects. */
  async state (): Promise<Announced> {
    const names: string[] = await readdir(this.#folder).catch(() => [])
    const isRunning = await this.#isRunning()
    return {
      available: isRunning || this.#hasNetwork(),
      hostname: this.hostname,
      base_advertised: names.includes(BASE),
      advertised: isRunning ? names.flatMap(name => OURS.exec(name)?.[1] ?? []).sort() : [...this.#responder.advertised].sort()
    }
  }

  /** Null, or why it could not be done. Never rejects. */
  async advertise (services: readonly ServiceDescriptor[]): Promise<string | null> {
    const begun = this.#begun.then(() => this.#begin(services))
    this.#begun = begun
    return await (await begun).told
  }

  /** Null, or why it could not be done. Never rejects. */
  async withdraw (): Promise<string | null> {
    // what is only about to be announced would stay
    await this.#begun
    await this.#responder.withdraw()
    try {
      const names = await readdir(this.#folder).catch(() => [])
      await Promise.all(names.filter(name => OURS.test(name)).map(name => rm(join(this.#folder, name), { force: true })))
      return null
    } catch (error) {
      return `${this.#folder} cannot be written: ${messageOf(error)}`
    }
  }

  /** Resolves when there is something to withdraw: the network takes its time to be told. Never rejects. */
  async #begin (services: readonly ServiceDescriptor[]): Promise<Begun> {
    if (!await this.#isRunning()) return { told: this.#answer(services) }
    try {
      // the daemon came later: two that answer for one name would contradict each other
      await this.#responder.withdraw()
      await mkdir(this.#folder, { recursive: true })
      for (const service of services) {
        await writeFile(this.#file(service.id), serviceFile(service.name, placeOf(this.#deps, service).port))
      }
      return { told: null }
    } catch (error) {
      return { told: `${this.#folder} cannot be written: ${messageOf(error)}` }
    }
  }

  async #answer (services: readonly ServiceDescriptor[]): Promise<string | null> {
    if (!this.#hasNetwork()) return 'this machine has no network to announce them in'
    const host = this.hostname.replace(/\.local$/, '')
    return await this.#responder.announce(services.map(service => ({
      id: service.id, name: service.name, title: `${service.name} on ${host}`, port: placeOf(this.#deps, service).port
    })))
  }

  #hasNetwork (): boolean {
    const { interfaces } = this.#deps
    return Object.entries(networkInterfaces()).some(([name, addresses = []]) =>
      interfaces === null ? addresses.some(({ internal }) => !internal) : interfaces.includes(name))
  }

  get #folder (): string {
    return this.#deps.config.secret('SVC_AVAHI_SERVICES_DIR') ?? USUAL_FOLDER
  }

  #file (id: string): string {
    return join(this.#folder, `svc-addon-${id}.service`)
  }

  /** systemd knows, and where there is none the daemon's own socket tells. */
  async #isRunning (): Promise<boolean> {
    if (await this.#deps.systemd.isActive('avahi-daemon.service')) return true
    return await access('/run/avahi-daemon/socket').then(() => true, () => false)
  }
}

/** Pure. */
export function serviceFile (name: string, port: number): string {
  const text = name.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
  return `<?xml version="1.0" standalone='no'?>
<!DOCTYPE service-group SYSTEM "avahi-service.dtd">
<service-group>
  <name replace-wildcards="yes">${text} on %h</name>
  <service>
    <type>_http._tcp</type>
    <port>${port}</port>
    <txt-record>path=/</txt-record>
    <txt-record>name=${text}</txt-record>
  </service>
</service-group>
`
}
