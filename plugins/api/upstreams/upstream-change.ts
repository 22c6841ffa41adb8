import {
  RESERVED_UPSTREAM_NAME, svcError, type ConfigDraft, type SvcError, type UpstreamTemplate
} from 'svc-gateway/plugin'
import { upstreamError } from './errors.js'
import type { CreateBody, PatchBody } from './schemas.js'

type Row = Record<string, unknown>
type NewRow = Row & Pick<CreateBody, 'auth_style' | 'auth_value_env'> & { readonly url: string }

/** The row that a request to create asks for, its template filled in. Throws `upstream.invalid`, `upstream.protected`. Pure. */
export function newRow ({ catalog_id: id, ...body }: Omit<CreateBody, 'auth_value'>, templates: readonly UpstreamTemplate[]): NewRow {
  requireOwnName(body.name)
  const template = id === undefined || id === CUSTOM ? undefined : templates.find(row => row.id === id)
  if (id !== undefined && id !== CUSTOM && template === undefined) {
    const message = `no such template: '${id}'; there are: ${templates.map(row => row.id).join(', ')}`
    throw svcError('upstream.invalid', message, { param: 'catalog_id', details: { fields: [{ path: 'catalog_id', message }] } })
  }
  const url = body.url === undefined ? template?.url : body.svc === true ? gatewayBase(body.url) : body.url
  if (url === undefined) throw invalid('url', 'is needed: the address of the upstream, or a `catalog_id` that has one')
  checkFallback(body.name, body.fallback)
  if (template === undefined) return { ...body, url }
  const { auth_style: style, auth_header: header, auth_value_env: env } = template
  return { ...(header === '' ? {} : { auth_header: header }), auth_style: style, ...(env === '' ? {} : { auth_value_env: env }), ...body, url }
}

/** Gateways serve below `/v1`, and people give the address that they open in a browser. Pure. */
export function gatewayBase (url: string): string {
  const base = new URL(url)
  if (base.pathname.replace(/\/+$/, '') === '') base.pathname = '/v1'
  return base.href
}

/** The entry of the catalogue that has no address of its own. */
export const CUSTOM = 'custom'

/** Throws `upstream.invalid` for an entry that leads back. Pure. */
export function checkFallback (name: string, fallback: readonly string[] = []): void {
  if (fallback.includes(name)) throw invalid('fallback', `names '${name}' itself; further tries there are \`retries\``)
}

const providerKeys = new Set([
  'timeout_seconds', 'connect_timeout_seconds', 'idle_timeout_seconds', 'retries', 'retry_wait_seconds', 'retry_max_wait_seconds',
  'fallback', 'breaker_failures', 'breaker_seconds', 'advertise_models', 'enabled', 'auth_value_env', 'pass_headers'
])

/** A patch in the words of providers.toml. Throws `upstream.invalid` for what that file has no words for. Pure. */
export function providerPatch (name: string, { url, model_filters: filters, ...patch }: Omit<PatchBody, 'auth_value'>): Row {
  const foreign = Object.keys(patch).filter(key => !providerKeys.has(key))
  if (filters !== undefined && filters !== null) foreign.push(...(['include', 'exclude'] as const).filter(key => filters[key] !== undefined))
  if (foreign.length > 0) {
    throw invalid(foreign[0]!, `cannot be set: '${name}' is in providers.toml, which has no ${foreign.join(', ')}; give it a row in upstreams.toml`)
  }
  return {
    ...patch,
    ...(url === undefined ? {} : { base_url: url }),
    ...(filters === undefined ? {} : { models: filters?.models ?? null })
  }
}

const structural = ['url', 'auth_style', 'auth_header', 'auth_value_env'] as const

/** Throws `upstream.protected`. Pure. */
export function guardSlotBacked (name: string, patch: PatchBody): void {
  const touched = structural.filter(key => patch[key] !== undefined)
  if (touched.length > 0) throw protectedUpstream(name, `it represents a slot, so ${touched.join(', ')} cannot be changed`)
}

export function requireOwnName (name: string): void {
  if (name === RESERVED_UPSTREAM_NAME) throw protectedUpstream(name, 'that is the gateway itself')
}

/** Throws `upstream.already_exists` when either file has the name, `upstream.invalid` when a slot does. */
export async function requireFreeName (draft: ConfigDraft, name: string, inForce: boolean): Promise<void> {
  const taken = inForce || (await draft.providers.ids()).includes(name)
  if (taken) throw svcError('upstream.already_exists', `upstream '${name}' already exists; change it, or choose another name`, { details: { upstream: name } })
  if (draft.slots.has(name)) throw invalid('name', `is the name of slot '${name}', which would hide it; choose another`)
}

function invalid (path: string, message: string): SvcError {
  return svcError('upstream.invalid', `${path} ${message}`, { param: path, details: { fields: [{ path, message }] } })
}

function protectedUpstream (name: string, why: string): SvcError {
  return upstreamError('upstream.protected', `upstream '${name}' is protected: ${why}`, { details: { upstream: name } })
}
