import { svcError, type SvcError } from '../../contract/index.js'
import { knownCodings } from './content-coding.js'

export function bodyTooLarge (): SvcError {
  return svcError('request.too_large', 'the body is larger than this route allows; the limits are in [server] of svc.toml')
}

export function bodyMemoryFull (limitBytes: number): SvcError {
  return svcError('gateway.body_memory_full',
    `the bodies of all requests together already take ${limitBytes} bytes; try again later, or raise [server] body_memory_bytes`,
    { details: { limit_bytes: limitBytes, retry_after_s: 5 } })
}

export function bodyStalled (idleMs: number): SvcError {
  return svcError('request.body_stalled', `the body stalled for ${idleMs / 1000} s; send the request again`)
}

export function unknownCoding (coding: string): SvcError {
  return svcError('request.unsupported_encoding',
    `the content encoding '${coding.slice(0, 200)}' is not supported; use one of ${knownCodings().join(', ')}, or send the body unencoded, without the header`)
}

export function brokenCoding (coding: string, cause: Error): SvcError {
  return svcError('request.invalid_encoding', `the body does not match its content encoding '${coding}'`, { cause })
}
