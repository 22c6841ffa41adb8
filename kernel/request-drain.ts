import { svcError, type Clock, type Logger } from './contract/index.js'
import { settlesWithin } from './async/waiting.js'
import type { Inference } from './inference.js'

/** What a request may take to end once it was told to: longer takes only a plugin that ignores its signal. */
const LAST_REQUESTS_MS = 2_000

export interface RequestDrain {
  readonly clock: Clock
  readonly log: Logger
  readonly active: Inference['dispatcher']['active']
  readonly graceMs: number
  /** Ends the grace. */
  readonly hurried: AbortSignal
}

/** Waits for running answers up to the grace, or until it is hurried; then ends them with an error event. */
export async function drainRequests ({ clock, log, active, graceMs, hurried }: RequestDrain): Promise<void> {
  const idle = active.idle()
  await new Promise<void>(resolve => {
    const timer = clock.setTimer(graceMs, resolve)
    const done = (): void => {
      timer.cancel()
      resolve()
    }
    void idle.then(done)
    if (hurried.aborted) done()
    else hurried.addEventListener('abort', done, { once: true })
  })
  active.stopAll(svcError('gateway.stopping', 'the gateway is shutting down', { details: { retry_after_s: 5 } }))
  if (await settlesWithin(clock, LAST_REQUESTS_MS, idle)) return
  log.error({ requests: active.list().map(({ id, slot, upstream }) => ({ id, slot, upstream })) }, 'requests did not end when asked to')
}
