import type { ConfigSnapshot, ErrorCode, ExternalProvider, Finding, ModelRegistry, Upstream, UpstreamTemplate } from '../../contract/index.js'
import { configFiles } from '../../config/parts/config-parts.js'
import { isGatewaySecret } from '../../contract/text/gateway-secret.js'
import { suggest } from '../../contract/text/suggest.js'
import { upstreamOfProvider, upstreamsOf } from './upstream-rows.js'

export interface UpstreamFacts {
  readonly config: ConfigSnapshot
  readonly models: Pick<ModelRegistry, 'get'>
  /** Models that engines switch between by themselves. */
  readonly catalogue: readonly string[]
}

type Tell = (key: string, severity: Finding['severity'], code: ErrorCode, message: string) => void

/** Rows of upstreams.toml and providers.toml that name what is not there. Lists of upstreams are not asked for. Pure. */
export function upstreamFindings (facts: UpstreamFacts): readonly Finding[] {
  const { config } = facts
  const found: Finding[] = []
  const teller = (file: string, row: string): Tell => (key, severity, code, message) => {
    found.push({ file, path: `${row}.${key}`, message, code, severity })
  }
  const uses = [...upstreamsOf(config).values()]
  config.upstreams.forEach((upstream, i) => {
    const tell = teller(configFiles.upstreams, `upstream.${i}`)
    checkSlot(upstream, facts, tell)
    if (upstream.kind === 'remote') checkKey(upstream, uses, config.templates, tell)
    checkFallbacks(upstream.name, upstream.fallback, facts, tell)
  })
  config.providers.forEach((provider, i) => {
    const tell = teller(configFiles.providers, `provider.${i}`)
    const upstream = upstreamOfProvider(provider, config.templates)
    if (upstream === null) return unknownTemplate(provider, config.templates, tell)
    if (config.upstreams.some(({ name, kind }) => kind === 'remote' && name === upstream.name)) {
      tell('name', 'warning', 'upstream.already_exists', `upstream '${upstream.name}' is also in upstreams.toml, which takes precedence; rename one of them`)
    }
    checkFallbacks(upstream.name, provider.fallback, facts, tell)
    checkKey(upstream, uses, config.templates, tell)
  })
  return found
}

/** A row that was written by hand counts; that it takes another upstream's key along is reported. */
function checkKey (row: Upstream, all: readonly Upstream[], templates: readonly UpstreamTemplate[], tell: Tell): void {
  const { name, url, auth_style: style, auth_value_env: variable } = row
  if (style === 'none' || variable === '') return
  const where = originOf(url)
  const elsewhere = (one: Pick<Upstream, 'url' | 'auth_style' | 'auth_value_env'>): boolean =>
    one.auth_style !== 'none' && one.auth_value_env === variable && originOf(one.url) !== where
  const other = all.find(one => one.name !== name && elsewhere(one))
  const template = templates.find(elsewhere)
  const owner = other !== undefined ? `upstream '${other.name}' (${originOf(other.url)})`
    : template !== undefined ? `${template.title} (${originOf(template.url)})` : null
  if (owner !== null) {
    tell('auth_value_env', 'warning', 'upstream.key_required', `${variable} goes to ${where}, and is also the key of ${owner}; give each its own variable`)
  } else if (isGatewaySecret(variable)) {
    tell('auth_value_env', 'warning', 'upstream.key_required', `${variable} is a secret of the gateway itself and goes to ${where}; give the upstream its own variable`)
  }
}

function originOf (url: string): string {
  try {
    return new URL(url).origin
  } catch {
    return ''
  }
}

function unknownTemplate ({ catalog_id: id }: ExternalProvider, templates: readonly UpstreamTemplate[], tell: Tell): void {
  const known = templates.map(template => template.id)
  const meant = suggest(id, known)
  tell('catalog_id', 'error', 'upstream.invalid',
    `no such template: '${id}'; ${meant === null ? `there are: ${known.join(', ')}.` : `did you mean ${meant}?`} A row with \`base_url\` needs no template`)
}

function checkSlot ({ kind, name, slot_name: slot }: Upstream, { config }: UpstreamFacts, tell: Tell): void {
  if (kind === 'slot') {
    if (slot === null || config.slots.has(slot)) return
    tell('slot_name', 'warning', 'slot.not_found', `no such slot: '${slot}'; correct it, or remove the row`)
  } else if (config.slots.has(name)) {
    tell('name', 'warning', 'upstream.invalid', `is the name of slot '${name}', which hides it; choose another`)
  }
}

/** A name without an upstream before it may be a model that only the upstream knows. */
function checkFallbacks (
  own: string, entries: readonly string[], { config, models, catalogue }: UpstreamFacts, tell: Tell
): void {
  const upstreams = upstreamsOf(config)
  const slots = [...config.slots.values()]
  const known = (entry: string): boolean =>
    entry.startsWith('svc/') || config.slots.has(entry) || models.get(entry) !== undefined ||
    catalogue.includes(entry) || slots.some(({ model }) => model.default === entry)
  for (const entry of entries) {
    const upstream = upstreams.get(entry) ?? upstreams.get(entry.slice(0, Math.max(0, entry.indexOf('/'))))
    if (entry === own) {
      tell('fallback', 'error', 'upstream.invalid', `names '${own}' itself; use \`retries\` to try it again`)
    } else if (known(entry)) {
      continue
    } else if (upstream === undefined) {
      const meant = suggest(entry, [...upstreams.keys(), ...config.slots.keys()])
      tell('fallback', 'warning', 'upstream.not_found',
        `'${entry}' is not a known slot, model or upstream${meant === null ? '.' : `; did you mean ${meant}?`} A model of an upstream is <upstream>/<model>`)
    } else if (!upstream.enabled) {
      tell('fallback', 'warning', 'upstream.invalid', `upstream '${upstream.name}' is switched off: \`svc upstream edit ${upstream.name} --enable\``)
    }
  }
}
