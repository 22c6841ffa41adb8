import { isGatewaySecret, svcError, type SvcError, type Upstream, type UpstreamTemplate } from 'svc-gateway/plugin'

/** Where a key would go. */
export type KeyUse = Pick<Upstream, 'name' | 'url' | 'auth_style' | 'auth_value_env'>

export interface KeyFacts {
  /** Upstreams in force. */
  readonly present: readonly KeyUse[]
  readonly templates: readonly Pick<UpstreamTemplate, 'url' | 'auth_style' | 'auth_value_env'>[]
  /** Whether a variable has a value, in api.env or the environment of the gateway. */
  readonly isSet: (variable: string) => boolean
}

/**
 * Why an upstream may not use a key without being given it again: the writer of an address must not get at what was
 * written down for another one, or at what will be: a variable belongs to the address that named it first. A key goes where
 * an upstream sends it already, or where its template says; null when that is the case, or when no row names it. Pure.
 */
export function keyProblem (use: KeyUse, { present, templates, isSet }: KeyFacts): SvcError | null {
  const { name, auth_style: style, auth_value_env: variable, url } = use
  if (style === 'none' || variable === '') return null
  const where = originOf(url)
  const uses = (one: Omit<KeyUse, 'name'>): boolean => one.auth_style !== 'none' && one.auth_value_env === variable
  const claims = present.filter(uses)
  const templated = templates.filter(uses)
  if ([...claims, ...templated].some(one => originOf(one.url) === where)) return null
  // what an upstream names itself is its own, from a template or not
  const isOwn = claims.some(one => one.name === name)
  const isClaimed = claims.some(one => one.name !== name) || (!isOwn && templated.length > 0)
  if (!isClaimed && !isSet(variable) && !isGatewaySecret(variable)) return null
  return svcError('upstream.key_required',
    `${variable} is a secret that no upstream sends to ${where} yet, so it must be set again: send it as \`auth_value\` with this change, or use another variable`,
    { param: 'auth_value', details: { variable, origin: where } })
}

/** Why an upstream cannot be given a key under a variable that another one sends to another address. Pure. */
export function sharedKeyProblem ({ name, url, auth_value_env: variable }: KeyUse, present: readonly KeyUse[]): SvcError | null {
  const own = originOf(url)
  const other = present.find(one =>
    one.name !== name && one.auth_style !== 'none' && one.auth_value_env === variable && originOf(one.url) !== own)
  if (other === undefined) return null
  const where = originOf(other.url)
  return svcError('upstream.key_required',
    `upstream '${other.name}' sends ${variable} to ${where}, which would get this key too; use another variable for '${name}'`,
    { param: 'auth_value_env', details: { variable, origin: where } })
}

function originOf (url: string): string {
  try {
    return new URL(url).origin
  } catch {
    return ''
  }
}
