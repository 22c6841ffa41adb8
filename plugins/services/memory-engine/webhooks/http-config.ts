import { int, mapOf, object, oneOf, optional, text } from '../wire/shape.js'

/** `WebhookHttpConfig` of the wire. */
export const httpConfig = object({
  method: optional(oneOf('POST', 'GET'), 'POST'), timeout_seconds: optional(int({ min: 1, max: 120 }), 30),
  headers: optional(mapOf(text), {}), params: optional(mapOf(text), {})
})
export type HttpConfig = ReturnType<typeof httpConfig>

export const plainHttp: HttpConfig = { method: 'POST', timeout_seconds: 30, headers: {}, params: {} }
