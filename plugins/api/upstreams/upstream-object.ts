import type { ConfigSnapshot, Upstream, UpstreamStatus } from 'svc-gateway/plugin'
import type { UpstreamObject } from './schemas.js'

/** @param hasSecret whether a variable is set; its value never comes near. Pure. */
export function upstreamObject (status: UpstreamStatus, hasSecret: (name: string) => boolean): UpstreamObject {
  const { config, source, models, refreshed_at: refreshedAt, error, circuit } = status
  const {
    connect_timeout_seconds: connect, idle_timeout_seconds: idle, model_filters: filters, pass_headers: pass, ...rest
  } = config
  const { url, auth_style: style, auth_value_env: env } = rest
  return {
    ...rest,
    source,
    url: withoutCredentials(url),
    auth_configured: style !== 'none' && env !== '',
    auth_key_present: env !== '' && hasSecret(env),
    connect_timeout_seconds: connect ?? null,
    idle_timeout_seconds: idle ?? null,
    pass_headers: pass ?? null,
    model_filters: filters ?? null,
    models: [...models],
    refreshed_at: refreshedAt,
    error,
    circuit
  }
}

/** Rows of upstreams.toml that stand for a slot: they are kept and shown, and mean nothing to dispatch. */
export function slotBacked ({ upstreams }: ConfigSnapshot): readonly UpstreamStatus[] {
  return upstreams.filter(({ kind }) => kind === 'slot').map((config: Upstream) => ({
    config, source: 'upstreams.toml', models: [], refreshed_at: null, error: null, circuit: { state: 'closed', failures: 0, retry_in_ms: 0 }
  }))
}

/** A user name or password in a URL is not shown. */
function withoutCredentials (url: string): string {
  const parsed = new URL(url)
  if (parsed.username === '' && parsed.password === '') return url
  parsed.username = ''
  parsed.password = ''
  return parsed.href
}
