import type { Core } from '../core.js'
import { PermanentFailure } from '../operations/operation.js'
import { json, type Handler, type WireAnswer, type WireCall } from '../wire/answer.js'
import { ModelTrouble, NoModel } from './ask.js'

const RETRY_AFTER_S = '5'

/** What the engine cannot do as it is, with the way out. The code is the gateway's, `detail` is what clients of the wire read. */
export function unsupported (detail: string): WireAnswer {
  return json({ detail, error: { code: 'memory.engine_unsupported', message: detail, type: 'invalid_request_error' } }, 501)
}

/** A model is asked while a client waits: what it fails with becomes an answer. */
export function asking (work: (call: WireCall) => Promise<WireAnswer>): Handler {
  return async call => {
    try {
      return await work(call)
    } catch (error) {
      return failed(call.core, call.signal, error)
    }
  }
}

function failed (core: Core, signal: AbortSignal, error: unknown): WireAnswer {
  if (error instanceof NoModel) return unsupported(error.message)
  if (signal.aborted || core.closing.aborted) throw error
  // the same question would fail again
  if (error instanceof PermanentFailure) return json({ detail: error.message }, 502)
  if (error instanceof ModelTrouble) return json({ detail: error.message }, 503, { 'retry-after': RETRY_AFTER_S })
  throw error
}
