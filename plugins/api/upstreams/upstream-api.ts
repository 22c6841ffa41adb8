import {
  svcError, type ActivityLog, type ActivityNote, type ConfigService, type GatewayInfo, type RouteCall, type UpstreamService,
  type UpstreamStatus
} from 'svc-gateway/plugin'
import { keyProblem, sharedKeyProblem, type KeyUse } from './key-binding.js'
import type { UpstreamObject } from './schemas.js'
import { slotBacked, upstreamObject } from './upstream-object.js'

export interface UpstreamServices {
  readonly activity: ActivityLog
  readonly config: ConfigService
  readonly info: GatewayInfo
  readonly upstreams: UpstreamService
}

type Caller = Pick<RouteCall, 'actor' | 'requestId'>

/** What the routes of this group share. */
export class UpstreamApi {
  readonly services: UpstreamServices

  constructor (services: UpstreamServices) {
    this.services = services
  }

  /** Slot-backed rows first, then the others in order of routing. */
  list (): UpstreamObject[] {
    return [...slotBacked(this.services.config.snapshot), ...this.services.upstreams.list()].map(status => this.#object(status))
  }

  remotes (): UpstreamObject[] {
    return this.services.upstreams.list().map(status => this.#object(status))
  }

  /** Throws `upstream.not_found`. */
  status (name: string): UpstreamStatus {
    const { config, upstreams } = this.services
    const found = upstreams.get(name) ?? slotBacked(config.snapshot).find(status => status.config.name === name)
    if (found !== undefined) return found
    throw svcError('upstream.not_found', `no such upstream: '${name}'; GET /api/upstreams lists them`, { details: { upstream: name } })
  }

  object (name: string): UpstreamObject {
    return this.#object(this.status(name))
  }

  /**
   * Sees to it that a key goes only where it was meant to go: writes the one that came along, or throws
   * `upstream.key_required` when a key that is set would go to another address.
   */
  async bindKey (use: Pick<KeyUse, 'name' | 'url'> & { readonly [K in keyof KeyUse]?: KeyUse[K] | undefined }, value: string | undefined): Promise<void> {
    const { config, upstreams } = this.services
    const { name, url, auth_style = 'bearer', auth_value_env = '' } = use
    const key: KeyUse = { name, url, auth_style, auth_value_env }
    if (value !== undefined && auth_value_env !== '') {
      this.requireUnshared(key)
      return await config.setSecret(auth_value_env, value)
    }
    const problem = keyProblem(key, {
      present: upstreams.list().map(({ config: row }) => row),
      templates: upstreams.templates,
      isSet: variable => (config.secret(variable) ?? '') !== ''
    })
    if (problem !== null) throw problem
  }

  /** Throws `upstream.key_required` when another upstream would send the same key somewhere else. */
  requireUnshared (key: KeyUse): void {
    const problem = sharedKeyProblem(key, this.services.upstreams.list().map(({ config: row }) => row))
    if (problem !== null) throw problem
  }

  /** Writes down who did what; rows hold no key, only its name. */
  audited<T> (
    { actor, requestId }: Caller, verb: string, target: string, work: (note: (learned: ActivityNote) => void) => Promise<T>
  ): Promise<T> {
    return this.services.activity.audited({ category: 'provider', action: `provider.${verb}`, target, actor, request_id: requestId }, work)
  }

  #object (status: UpstreamStatus): UpstreamObject {
    const { config } = this.services
    return upstreamObject(status, name => (config.secret(name) ?? '') !== '')
  }
}
