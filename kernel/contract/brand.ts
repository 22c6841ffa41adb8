/**
 * Brands: how the host recognises things that cross a package border. A plugin may carry its own copy
 * of a library, so identity is a registered symbol and never `instanceof`.
 */
export const PLUGIN_BRAND = Symbol.for('svc.plugin')
/** Not a brand: where `definePlugin` was called, as an error with its stack. */
export const PLUGIN_PLACE = Symbol.for('svc.plugin-place')
export const ROUTE_BRAND = Symbol.for('svc.route')
export const PROVIDER_BRAND = Symbol.for('svc.provider')
export const AGENT_BRAND = Symbol.for('svc.agent')
export const SERVICE_BRAND = Symbol.for('svc.service')
export const TOOL_BRAND = Symbol.for('svc.tool')
export const RUNTIME_BRAND = Symbol.for('svc.runtime')
export const SERVICE_REF_BRAND = Symbol.for('svc.service-ref')
export const ERROR_BRAND = Symbol.for('svc.error')
export const ERRORS_BRAND = Symbol.for('svc.errors')
export const SSE_BRAND = Symbol.for('svc.sse')
export const WEB_SOCKET_BRAND = Symbol.for('svc.web-socket')
export const JSON_BRAND = Symbol.for('svc.json')

export function hasBrand (value: unknown, brand: symbol): boolean {
  return typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[brand] === true
}
