import { svcError, type ConfigService, type NamedToolServer, type SvcError } from 'svc-gateway/plugin'
import { callError, endsConnection, isLostSession } from './call-errors.js'
import type { Connection } from './connection.js'
import { mcpError } from './errors.js'
import { answerSchema } from './learned.js'
import type { CallOptions, OfferedTool, ToolAnswer } from './ref.js'
import type { ServerLog } from './server-log.js'
import { isDeeper } from './tool-list.js'

/** Methods that go to a server as they come. */
export const passedMethods = ['resources/list', 'resources/templates/list', 'resources/read', 'prompts/list', 'prompts/get'] as const
export type PassedMethod = typeof passedMethods[number]

export interface ServerRequestsDeps {
  readonly config: Pick<ConfigService, 'withoutSecrets'>
  readonly log: Pick<ServerLog, 'lastWords'>
  readonly server: () => NamedToolServer
  /** The connection, opened if need be. */
  readonly ready: (signal: AbortSignal) => Promise<Connection>
  /** A connection is of no use any more. @param error what it failed with; null where a new session is all that it takes */
  readonly lost: (connection: Connection, error: SvcError | null) => void
  /** Told when one begins, and when one has ended. */
  readonly changed: () => void
}

type RequestExtras = Pick<NonNullable<Parameters<Connection['client']['request']>[2]>, 'onprogress'>

const MOST_LEVELS = 64

/** Requests to a server, by many callers at once. */
export class ServerRequests {
  readonly #deps: ServerRequestsDeps
  #running = 0

  constructor (deps: ServerRequestsDeps) {
    this.#deps = deps
  }

  /** How many there are at the moment. */
  get running (): number { return this.#running }

  /** Throws `mcp.unknown_tool` and what the server fails with. */
  async call (
    tools: readonly OfferedTool[], name: string, args: Readonly<Record<string, unknown>>, { signal, progress }: CallOptions
  ): Promise<ToolAnswer> {
    const tool = tools.find(each => each.name === name)
    if (tool === undefined) {
      throw svcError('mcp.unknown_tool', `tool server ${this.#deps.server().id} has no tool '${name}'; list its tools again`, { details: { tool: name } })
    }
    const params = { name: tool.own, arguments: { ...args } }
    return await this.#send('tools/call', params, signal, `tool ${name}`, {
      onprogress: ({ progress: done, total, message }) => progress?.(message ?? '', done, total)
    }) as ToolAnswer
  }

  /** What is passed through as it is: resources and prompts. */
  async pass (
    method: PassedMethod, params: Readonly<Record<string, unknown>>, signal: AbortSignal
  ): Promise<Readonly<Record<string, unknown>>> {
    return await this.#send(method, params, signal, method)
  }

  async #send (
    method: string, params: Readonly<Record<string, unknown>>, signal: AbortSignal, what: string, options: RequestExtras = {},
    isRetry = false
  ): Promise<Record<string, unknown>> {
    const { changed, ready, server } = this.#deps
    this.#running++
    changed()
    try {
      const connection = await ready(signal)
      const { id, call_timeout_s: timeoutS } = server()
      const answer = await connection.client.request({ method, params: { ...params } }, answerSchema,
        { ...options, signal, timeout: timeoutS * 1000, resetTimeoutOnProgress: true })
        .catch((error: unknown) => this.#failed(connection, error, what, signal))
      // what could not be written again, neither for a client nor in a row
      if (isDeeper(answer, MOST_LEVELS)) {
        throw mcpError('mcp.answer_too_large', `${what} of tool server ${id}: the answer is nested deeper than ${MOST_LEVELS} levels`, { details: { id } })
      }
      return answer
    } catch (error) {
      if (isRetry || !isLostSession((error as Error).cause)) throw error
      return await this.#send(method, params, signal, what, options, true)
    } finally {
      this.#running--
      changed()
    }
  }

  async #failed (connection: Connection, error: unknown, what: string, signal: AbortSignal): Promise<never> {
    signal.throwIfAborted()
    const { config, log, lost, server } = this.#deps
    const { id } = server()
    const isOver = endsConnection(error)
    if (isOver && connection.isPiped) {
      // the program has gone, or goes this moment: its last words tell most
      const why = await connection.ended
      throw mcpError('mcp.server_ended', `tool server ${id} ${why} during ${what}${log.lastWords()}`, { details: { id }, cause: error })
    }
    const shown = callError(id, what, error, text => config.withoutSecrets(text))
    if (isOver) lost(connection, isLostSession(error) ? null : shown)
    throw shown
  }
}
