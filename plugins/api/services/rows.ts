import type { ConfigService, DaemonService, ServiceDescriptor } from 'svc-gateway/plugin'
import type { z } from 'zod'
import type { Announced } from './announcements.js'
import type { ServiceManager } from './companions.js'
import type { KeptServices } from './kept.js'
import type { healthSchema, serviceSchema } from './schemas.js'
import type { UnitState } from './systemd.js'
import { placeOf, type ServiceSettings } from './world.js'

export interface RowDeps {
  readonly manager: ServiceManager
  readonly config: ConfigService
  readonly daemons: DaemonService
  readonly kept: KeptServices
  readonly settings: Readonly<Record<string, ServiceSettings>>
}

type ServiceRow = z.output<typeof serviceSchema>
type HealthRow = z.output<typeof healthSchema>['services'][number]

/** Every service as the list shows it. */
export async function serviceRows (deps: RowDeps, announced: Promise<Announced>): Promise<ServiceRow[]> {
  const { manager } = deps
  const [units, mdns] = await Promise.all([manager.units(), announced])
  return await Promise.all(manager.list().map(async service => {
    const { id, name, description, unit, verbs, licence, loopback, mdns: capable, hints = [], slot } = service
    const form = manager.formOf(service, units)
    const { up, detail, stat } = await manager.probe(service)
    const installation = manager.installer.status(service)
    const isOurs = form === 'python' || form === 'container' || form === 'agent'
    const daemon = manager.daemonOf(service)
    const { problem } = deps.daemons.status(daemon)
    const runner = manager.runnerOf(service)
    const own = runner?.installed() ?? null
    const port = manager.portOf(service)
    const isAbsent = slot === undefined ? form === null : manager.slotOf(service) === null
    return {
      id,
      name,
      description,
      managed: !isAbsent,
      runs_as: form,
      unit,
      unit_state: units.get(unit) ?? (isOurs ? ownState(deps, daemon, form === 'agent' || deps.kept.get(id).enabled) : null),
      up,
      detail: up || problem === null ? detail : problem,
      stat,
      url: urlOf(deps, service, mdns.hostname),
      mdns_url: mdns.advertised.includes(id) ? `http://${mdns.hostname}:${port}/` : null,
      loopback_port: loopback === true ? port : null,
      actions: [...verbs],
      mdns_capable: capable,
      wired: isOurs || slot !== undefined ? true : null,
      licence,
      installation: own === null ? { ...installation, settings: [...installation.settings] } : { state: 'installed', form: null, version: own.version, message: '', settings: [] },
      hints: [
        ...typeof hints === 'function' ? hints() : hints,
        ...isAbsent && installation.state === 'absent' && (service.python ?? service.container ?? service.slotOffer) !== undefined ? [`\`svc service install ${id}\` brings it`] : [],
        ...form === null && runner !== undefined ? [`\`${runner.brings}\` brings it`] : []
      ]
    }
  }))
}

/** Only what a look at the service itself tells. */
export async function healthRows (deps: RowDeps, hostname: string): Promise<HealthRow[]> {
  const { manager } = deps
  return await Promise.all(manager.list().map(async service => {
    const { up, detail, stat } = await manager.probe(service)
    return { id: service.id, name: service.name, up, detail, url: urlOf(deps, service, hostname), stat }
  }))
}

/** As systemd would word it. */
function ownState ({ daemons }: RowDeps, daemon: string, enabled: boolean): UnitState {
  const { state, since, problem } = daemons.status(daemon)
  const words = state === 'running' ? ['active', 'running'] : state === 'waiting' ? ['activating', 'auto-restart'] : problem === null ? ['inactive', 'dead'] : ['failed', 'failed']
  return {
    active_state: words[0]!,
    sub_state: words[1]!,
    unit_file_state: enabled ? 'enabled' : 'disabled',
    since: since === null ? null : new Date(since).toISOString()
  }
}

/** Where people open it: what the operator says, else this host and its port; nothing for a page that listens on loopback. */
function urlOf (deps: RowDeps, service: ServiceDescriptor, mdnsName: string): string | null {
  const { publicUrlVariable, page, loopback } = service
  const told = publicUrlVariable === undefined ? undefined : deps.config.secret(publicUrlVariable)
  if (told !== undefined) return told
  if (page === null || loopback === true) return null
  const { host } = placeOf(deps, service)
  const port = deps.manager.portOf(service)
  const isEverywhere = host === '0.0.0.0' || host === '::'
  return `http://${isEverywhere ? mdnsName : host.includes(':') ? `[${host}]` : host}:${port}${page}`
}
