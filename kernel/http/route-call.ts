import { setMaxListeners } from 'node:events'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger, RouteCall } from '../contract/index.js'
import { clientLeft, isGone, onClose } from '../dispatch/answer/client-gone.js'
import { actorOf } from './actor.js'

/** What a handler gets. What most handlers never ask for is made when they do. */
export class Call<P, Q, B> implements RouteCall<P, Q, B> {
  readonly params: P
  readonly query: Q
  readonly body: B
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  readonly log: Logger
  #controller: AbortController | null = null

  constructor (request: FastifyRequest, reply: FastifyReply, log: Logger, params: P, query: Q, body: B) {
    this.request = request
    this.reply = reply
    this.log = log
    this.params = params
    this.query = query
    this.body = body
  }

  get requestId (): string { return this.request.id }
  get actor (): string { return actorOf(this.request.headers) }

  /**
   * Follows the answer, not the request: a request's side closes as soon as its body is read, while the client
   * still waits.
   */
  get signal (): AbortSignal {
    if (this.#controller === null) {
      const controller = new AbortController()
      setMaxListeners(0, controller.signal) // one for each thing that is done for the request at once
      const { raw } = this.reply
      const gone = (): void => {
        if (!raw.writableFinished) controller.abort(clientLeft(this.request.id))
      }
      if (isGone(raw)) gone()
      else raw.once('finish', onClose(raw, gone))
      this.#controller = controller
    }
    return this.#controller.signal
  }
}
