import { messageOf, svcError, type ActivityLog, type ActivityNote, type Logger, type RouteCall } from 'svc-gateway/plugin'

export interface OrderWork<T> {
  /** Answers the client; what comes after goes on without it. */
  readonly answer: (value: T) => void
  readonly note: (learned: ActivityNote) => void
  /** Aborts when the gateway stops. */
  readonly signal: AbortSignal
}

/**
 * Work that a request begins and that goes on when the request has been answered. Its audit row is written at its end
 * and tells how it ended; `close` ends it.
 */
export class Orders {
  readonly #activity: ActivityLog
  readonly #log: Logger
  readonly #stopping = new AbortController()
  readonly #running = new Set<Promise<unknown>>()

  constructor (activity: ActivityLog, log: Logger) {
    this.#activity = activity
    this.#log = log
  }

  /** The answer; rejects with what refuses the order before it is answered. */
  give<T> (
    { actor, requestId }: Pick<RouteCall, 'actor' | 'requestId'>, action: string, target: string, work: (order: OrderWork<T>) => Promise<void>
  ): Promise<T> {
    const row = { category: 'comfyui', action: `comfyui.${action}`, target, actor, request_id: requestId }
    const { signal } = this.#stopping
    return new Promise((resolve, reject) => {
      let answered = false
      const answer = (value: T): void => {
        answered = true
        resolve(value)
      }
      const done = this.#activity.audited(row, note => work({ answer, note, signal })).catch((error: unknown) => {
        // the audit row tells it: the caller has left
        if (answered) this.#log.warn({ action: row.action, target }, `${row.action} of ${target} failed: ${messageOf(error)}`)
        reject(error as Error)
      }).finally(() => { this.#running.delete(done) })
      this.#running.add(done)
    })
  }

  async close (): Promise<void> {
    this.#stopping.abort(svcError('gateway.stopping', 'the gateway is shutting down'))
    await Promise.all(this.#running)
  }
}
