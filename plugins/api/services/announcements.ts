import { access, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { hostname, networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { messageOf, pause, SerialQueue, type Clock, type ConfigService, type Logger, type ServiceDescriptor } from 'svc-gateway/plugin'
import { Responder } from './responder.js'
import type { Systemd } from './systemd.js'

const USUAL_FOLDER = '/etc/avahi/services'
/** The gateway's own, which an installation brings and nothing here touches. */
const BASE = 'svc.service'
/** How often it is asked who tells the network now, while something is announced. */
const LOOK_MS = 5_000
const RUN_FOLDER = '/run/avahi-daemon'
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
  /** Where a service listens now, or would. */
  readonly portOf: (service: ServiceDescriptor) => number
  readonly clock: Clock
  readonly log: Logger
  /** Network interfaces that the gateway announces on; null for those that the machine is known by. */
  readonly interfaces: readonly string[] | null
}

interface Begun { readonly told: string | null | Promise<string | null> }

/** Who tells the network. */
type Teller = 'avahi' | 'gateway'

/**
 * Where an avahi daemon runs, its service files, one for each service that is announced; files that are not ours stay as
 * they are. Elsewhere, and while the daemon is away, the gateway answers the network itself.
 */
export class Announcements {
  readonly #deps: AnnouncementDeps
  readonly #responder: Responder
  readonly #steps = new SerialQueue()
  #telling: Promise<unknown> | null = null
  #teller: Teller | null = null
  /** What was told, by id. */
  #ports: ReadonlyMap<string, number> = new Map()
  #withdrawals = 0
  /** Ends with the announcements. */
  #following: AbortController | null = null

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
    const before = this.#withdrawals
    const problem = await this.#tell(services)
    if (this.#withdrawals > before) return 'they were withdrawn during the announcement'
    if (problem === null) this.#follow(services)
    return problem
  }

  /** The same, again and again until it can be done. */
  async resume (services: readonly ServiceDescriptor[]): Promise<string | null> {
    this.#follow(services)
    return await this.#tell(services)
  }

  /** Null, or why it could not be done. Never rejects. */
  async withdraw (): Promise<string | null> {
    this.#following?.abort()
    this.#following = null
    this.#withdrawals++
    // behind what is only about to be announced, which would stay, and before what is announced next
    return await this.#steps.run(async () => {
      await this.#responder.withdraw()
      this.#teller = null
      return await this.#removeFiles()
    })
  }

  async #removeFiles (): Promise<string | null> {
    try {
      const names = await readdir(this.#folder).catch(() => [])
      await Promise.all(names.filter(name => OURS.test(name)).map(name => rm(join(this.#folder, name), { force: true })))
      return null
    } catch (error) {
      return `${this.#folder} cannot be written: ${messageOf(error)}`
    }
  }

  async #tell (services: readonly ServiceDescriptor[]): Promise<string | null> {
    const told = this.#steps.run(() => this.#begin(services)).then(async ({ told }) => await told)
    this.#telling = told
    const problem = await told
    if (this.#telling === told) this.#telling = null
    return problem
  }

  /** The daemon may go away and come back, and the network with it; the engine of a slot may come up at another port. */
  #follow (services: readonly ServiceDescriptor[]): void {
    this.#following?.abort()
    const following = new AbortController()
    this.#following = following
    const { signal } = following
    void (async () => {
      for (;;) {
        await pause(this.#deps.clock, LOOK_MS, signal)
        if (signal.aborted) return
        if (this.#telling !== null || await this.#isTold(services) || signal.aborted) continue
        const problem = await this.#tell(services)
        this.#deps.log.info({ by: this.#teller, problem }, 'services are announced again: an avahi daemon, the network or a port changed')
      }
    })()
  }

  async #isTold (services: readonly ServiceDescriptor[]): Promise<boolean> {
    if (services.some(service => this.#ports.get(service.id) !== this.#deps.portOf(service))) return false
    if (await this.#isRunning()) return this.#teller === 'avahi'
    return this.#teller === 'gateway' && services.every(({ id }) => this.#responder.advertised.includes(id))
  }

  /** Resolves when there is something to withdraw: the network takes its time to be told. Never rejects. */
  async #begin (services: readonly ServiceDescriptor[]): Promise<Begun> {
    const ports = new Map(services.map(service => [service.id, this.#deps.portOf(service)]))
    this.#ports = ports
    if (!await this.#isRunning()) {
      // a daemon that comes back would announce them beside the gateway
      if (this.#teller === 'avahi') await this.#removeFiles()
      this.#teller = 'gateway'
      return { told: this.#answer(services, ports) }
    }
    try {
      // the daemon came later: two that answer for one name would contradict each other
      await this.#responder.withdraw()
      await mkdir(this.#folder, { recursive: true })
      for (const { id, name } of services) await writeFile(this.#file(id), serviceFile(name, ports.get(id)!))
      this.#teller = 'avahi'
      return { told: null }
    } catch (error) {
      return { told: `${this.#folder} cannot be written: ${messageOf(error)}` }
    }
  }

  async #answer (services: readonly ServiceDescriptor[], ports: ReadonlyMap<string, number>): Promise<string | null> {
    if (!this.#hasNetwork()) return 'this machine has no network to announce them on'
    const host = this.hostname.replace(/\.local$/, '')
    return await this.#responder.announce(services.map(({ id, name }) => ({ id, name, title: `${name} on ${host}`, port: ports.get(id)! })))
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

  /** Its own files tell, cheaply; systemd knows where they do not, as its socket is there without the daemon. */
  async #isRunning (): Promise<boolean> {
    const isAlive = await daemonIsAlive()
    if (isAlive === true) return true
    if (await this.#deps.systemd.isActive('avahi-daemon.service')) return true
    return isAlive === null && await access(`${RUN_FOLDER}/socket`).then(() => true, () => false)
  }
}

/** Null where it has left no word of itself, as where only its socket was mounted. */
async function daemonIsAlive (): Promise<boolean | null> {
  const pid = Number(await readFile(`${RUN_FOLDER}/pid`, 'utf8').catch(() => ''))
  if (!Number.isInteger(pid) || pid <= 0) return null
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
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
