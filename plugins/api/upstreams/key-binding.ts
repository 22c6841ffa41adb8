import { svcError, type SvcError, type Upstream, type UpstreamTemplate } from 'svc-gateway/plugin'

/** Where a key would go. */
export type KeyUse = Pick<Upstream, 'url' | 'auth_style' | 'auth_value_env'>

export interface KeyFacts {
  /** Upstreams in force. */
  readonly present: readonly KeyUse[]
  readonly templates: readonly Pick<UpstreamTemplate, 'url' | 'auth_value_env'>[]
  /** Whether a variable has a value, in api.env or the environment of the gateway. */
  readonly isSet: (variable: string) => boolean
}

/** Secrets of the gateway itself, which are nobody's key, set or not. */
const OWN = /^(SVC_|HF_|HUGGING_?FACE|PROXMOX)/

/**
 * Why an upstream may not use a key without being given it again: whoever writes an address must not get at what was
 * written down for another one. A key goes where an upstream sends it already, or where its template says; null when that
 * is the case, or when there is no key yet. Pure.
 */
export function keyProblem (use: KeyUse, { present, templates, isSet }: KeyFacts): SvcError | null {
  const { auth_style: style, auth_value_env: variable, url } = use
  if (style === 'none' || variable === '') return null
  const isKnown = [...present.filter(one => one.auth_style !== 'none'), ...templates]
    .some(one => one.auth_value_env === variable && originOf(one.url) === originOf(url))
  if (isKnown || (!isSet(variable) && !OWN.test(variable))) return null
  const where = originOf(url)
  return svcError('upstream.key_required',
    `${variable} is a secret that no upstream sends to ${where} yet, so it has to be given again: send it as \`auth_value\` along with this change, or name another variable`,
    { param: 'auth_value', details: { variable, origin: where } })
}

function originOf (url: string): string {
  try {
    return new URL(url).origin
  } catch {
    return ''
  }
}
