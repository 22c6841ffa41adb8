import { isSvcError, svcError, type Logger, type SvcError } from '../../contract/index.js'
import { leftRequest } from './client-gone.js'

/** What a client learns of a failure: what was not expected stays in the log. */
export function toldFailure (error: unknown, log: Logger): SvcError {
  if (isSvcError(error)) return error
  const left = leftRequest(error)
  if (left !== null) {
    log.debug({ request_id: left }, 'the client left before its request was answered')
    return svcError('request.cancelled', 'the client closed its connection')
  }
  log.error({ err: error }, 'a request could not be dispatched')
  return svcError('system.internal', 'internal error; see the log of the gateway', { cause: error })
}
