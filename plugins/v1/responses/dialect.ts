import { errorEnvelope, type WireDialect } from 'svc-gateway/plugin'

/**
 * The error envelope; inside a stream as the `error` event of the Responses API, with the envelope's object beside
 * its fields, so that clients of either find theirs.
 */
export const responsesDialect: WireDialect = {
  failure: errorEnvelope,
  failureEvent: failure => {
    const { error = {} } = failure as { readonly error?: Readonly<Record<string, unknown>> }
    const { code = null, message = 'the stream broke off', param = null } = error
    return { event: 'error', data: { type: 'error', code, message, param, error } }
  }
}
