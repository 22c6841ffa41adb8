import { svcError, type SvcError } from '../../contract/index.js'
import { knownCodings } from './content-coding.js'

export function bodyTooLarge (): SvcError {
  return svcError('request.too_large', 'the body is larger than this route takes; the limits are in [server] of svc.toml')
}

export function bodyMemoryFull (limitBytes: number): SvcError {
  return svcError('gateway.body_memory_full',
    `the bodies of all requests together take up ${limitBytes} bytes already; ask again when some are answered, or raise [server] body_memory_bytes`,
    { details: { limit_bytes: limitBytes, retry_after_s: 5 } })
}

export function bodyStalled (idleMs: number): SvcError {
  return svcError('request.body_stalled', `almost nothing of the body arrived for ${idleMs / 1000} s; send the request again`)
}

export function unknownCoding (coding: string): SvcError {
  return svcError('request.unsupported_encoding',
    `the body has the content encoding '${coding.slice(0, 200)}'; send it with one of ${knownCodings().join(', ')}, or as it is, without the header`)
}

export function brokenCoding (coding: string, cause: Error): SvcError {
  return svcError('request.invalid_encoding', `the body is not what its content encoding '${coding}' says`, { cause })
}
