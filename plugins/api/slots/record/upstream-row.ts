import type { UpstreamView } from 'svc-gateway/plugin'
import type { UpstreamRow } from './record-schema.js'

/** Upstreams as rows among the slots; a slot hides the upstream that has its name. Pure. */
export function upstreamRows (upstreams: readonly UpstreamView[], slotNames: ReadonlySet<string>): UpstreamRow[] {
  return upstreams.filter(({ name }) => !slotNames.has(name)).map(upstreamRow)
}

function upstreamRow (upstream: UpstreamView): UpstreamRow {
  const { name, kind, url, svc, enabled, models, error, refreshed_at: refreshedAt } = upstream
  const status = enabled && error === null && refreshedAt !== null ? 'serving' : 'offline'
  return {
    name,
    kind,
    state: status,
    status,
    model: models[0] ?? null,
    backend: 'remote',
    provider: 'remote-upstream',
    url: withoutCredentials(url),
    advertised_models: models.length,
    last_used_model: null,
    ...(svc ? { svc } : {}),
    _synthetic: true,
    _synthetic_reason: reasonOf(upstream),
    metrics: { toks: 0, ttft: null, ctx: null, kv: null, mem: null }
  }
}

function reasonOf ({ enabled, error, refreshed_at: refreshedAt }: UpstreamView): string {
  if (!enabled) return 'an upstream that is switched off'
  if (error !== null) return `an upstream that does not answer: ${error}`
  return refreshedAt === null ? 'an upstream whose models are not known yet' : 'a configured upstream'
}

/** A user name or password in a URL is not shown. */
export function withoutCredentials (url: string): string {
  const parsed = new URL(url)
  if (parsed.username === '' && parsed.password === '') return url
  parsed.username = ''
  parsed.password = ''
  return parsed.href
}
