import {
  svcError, type Clock, type ConfigService, type Upstream, type UpstreamAnswer, type UpstreamService, type UpstreamStatus,
  type UpstreamReading, type UpstreamTemplate
} from '../../contract/index.js'
import type { Breakers } from './breakers.js'
import type { UpstreamPool } from './upstream-pool.js'

export interface GatewayUpstreamServiceDeps {
  readonly clock: Clock
  readonly config: ConfigService
  readonly pool: UpstreamPool
  readonly breakers: Breakers
}

/** The upstreams as the rest of the gateway manages them (contract `UpstreamService`). */
export class GatewayUpstreamService implements UpstreamService {
  readonly #deps: GatewayUpstreamServiceDeps

  constructor (deps: GatewayUpstreamServiceDeps) {
    this.#deps = deps
  }

  get templates (): readonly UpstreamTemplate[] {
    return this.#deps.config.snapshot.templates
  }

  list (): readonly UpstreamStatus[] {
    return this.#deps.pool.all().map(upstream => this.#status(upstream))
  }

  get (name: string): UpstreamStatus | undefined {
    const upstream = this.#deps.pool.get(name)
    return upstream === undefined ? undefined : this.#status(upstream)
  }

  async ask (name: string, signal: AbortSignal): Promise<UpstreamAnswer> {
    const { pool, breakers, clock } = this.#deps
    const upstream = pool.get(name)
    if (upstream === undefined) {
      throw svcError('upstream.not_found', `no such upstream: '${name}'; GET /api/upstreams lists them`, { details: { upstream: name } })
    }
    const from = clock.monotonic()
    const { rows, status, error } = await pool.ask(upstream, signal)
    if (rows !== null) breakers.reset(name)
    const latencyMs = Math.round(clock.monotonic() - from)
    return { ok: rows !== null, status, latency_ms: latencyMs, models_count: rows?.length ?? null, error }
  }

  read (upstream: Upstream, path: string, signal: AbortSignal): Promise<UpstreamReading> {
    return this.#deps.pool.read(upstream, path, signal)
  }

  onModels (listener: () => void): () => void {
    return this.#deps.pool.onModels(listener)
  }

  #status (upstream: Upstream): UpstreamStatus {
    const { pool, breakers, config } = this.#deps
    const known = pool.list(upstream.name)
    return {
      config: upstream,
      source: config.snapshot.upstreams.includes(upstream) ? 'upstreams.toml' : 'providers.toml',
      models: pool.models(upstream),
      refreshed_at: known?.refreshedAt == null ? null : new Date(known.refreshedAt).toISOString(),
      error: known?.error ?? null,
      circuit: breakers.view(upstream)
    }
  }
}
