import type { ConfigSnapshot, ExternalProvider, Upstream, UpstreamTemplate } from '../../contract/index.js'

/** The upstream that an entry of providers.toml stands for; null when its template is unknown and it has no URL. */
export function upstreamOfProvider (provider: ExternalProvider, templates: readonly UpstreamTemplate[]): Upstream | null {
  const { catalog_id: id, name, base_url: baseUrl, auth_value_env: env, models, ...call } = provider
  const row = templates.find(template => template.id === id)
  const url = baseUrl ?? row?.url
  if (url === undefined) return null
  return {
    ...call,
    name: name ?? id.replaceAll('_', '-'),
    kind: 'remote',
    url,
    auth_style: row?.auth_style ?? (env === undefined ? 'none' : 'bearer'),
    auth_header: row?.auth_header ?? '',
    auth_value_env: env ?? row?.auth_value_env ?? '',
    slot_name: null,
    svc: false,
    warmup_strategy: 'none',
    ...(models.length === 0 ? {} : { model_filters: { models, include: [], exclude: [] } })
  }
}

/** Remote upstreams of both files by name; a name in upstreams.toml wins over one in providers.toml. */
export function upstreamsOf (
  { upstreams, providers, templates }: Pick<ConfigSnapshot, 'upstreams' | 'providers' | 'templates'>
): ReadonlyMap<string, Upstream> {
  const named = new Map<string, Upstream>()
  for (const provider of providers) {
    const upstream = upstreamOfProvider(provider, templates)
    if (upstream !== null) named.set(upstream.name, upstream)
  }
  for (const upstream of upstreams) if (upstream.kind === 'remote') named.set(upstream.name, upstream)
  return named
}
