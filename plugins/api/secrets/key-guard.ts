import { svcError, type Upstream, type UpstreamService } from 'svc-gateway/plugin'

/**
 * Throws `upstream.key_required` when a value would go to an upstream that was not declared for it: an upstream may have named
 * the variable long before it has a value. Upstreams where a template sends the same variable need no declaration.
 */
export function guardKey (variable: string, declared: readonly string[], upstreams: UpstreamService): void {
  const uses = ({ auth_style: style, auth_value_env: name }: Pick<Upstream, 'auth_style' | 'auth_value_env'>): boolean =>
    style !== 'none' && name === variable
  const usual = new Set(upstreams.templates.filter(uses).map(({ url }) => originOf(url)))
  const others = upstreams.list().map(({ config }) => config)
    .filter(row => uses(row) && !declared.includes(row.name) && !usual.has(originOf(row.url)))
    .map(({ name, url }) => ({ name, origin: originOf(url) }))
  if (others.length === 0) return
  const named = others.map(({ name, origin }) => `upstream '${name}' (${origin})`).join(' and ')
  throw svcError('upstream.key_required',
    `${variable} would be sent by ${named}; if that is intended, list them in \`upstreams\`, otherwise use another variable`,
    { param: 'upstreams', details: { variable, upstreams: others } })
}

function originOf (url: string): string {
  try {
    return new URL(url).origin
  } catch {
    return ''
  }
}
