import { svcError, type SvcError } from '../../contract/index.js'

export function packedForm (coding: string): SvcError {
  return svcError('request.unsupported_encoding', `uploads cannot have the content encoding '${coding.slice(0, 200)}'; send them without it, as audio and image files are already compressed`)
}

export function tooLarge (limitBytes: number): SvcError {
  return svcError('request.too_large', `the upload is larger than ${limitBytes} bytes; [server] upload_limit_bytes of svc.toml allows more`,
    { details: { limit_bytes: limitBytes } })
}

export function uploadStalled (limitMs: number): SvcError {
  return svcError('request.upload_stalled', `no data of the upload arrived for ${limitMs / 1000} s; send it again`)
}

export function spoolFailed (error: Error): SvcError {
  return svcError('gateway.spool_failed', `the upload must wait but cannot be stored on disk (${(error as NodeJS.ErrnoException).code ?? 'see the log'}); free some space in the state folder`,
    { cause: error, details: { retry_after_s: 30 } })
}
