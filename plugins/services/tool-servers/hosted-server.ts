import {
  abortable, isSvcError, messageOf, svcError, type EventBus, type NamedToolServer, type SvcError, type Timer
} from 'svc-gateway/plugin'
import { callError } from './call-errors.js'
import { connect, type ChangeKind, type Connection, type ConnectionDeps } from './connection.js'
import { mcpError } from './errors.js'
import { Failures } from './failures.js'
import { keyOf, learn } from './learned.js'
import { Offer, type OfferDeps } from './offer.js'
import type { CallOptions, OfferedTool, ServerState, ServerStatus, ToolAnswer } from './ref.js'
import { ServerRequests, type PassedMethod } from './server-requests.js'
import { isRemote } from './spec.js'
import { isGated } from './tool-list.js'

export interface HostedServerDeps extends ConnectionDeps, OfferDeps {
  readonly events: EventBus
}

/** A server that could not be asked for its tools is asked again by itself, for what is not listed cannot be called. */
const LEARN_AGAIN_MS = 5_000

/** One tool server: started or reached when it is needed, by one of many callers; paced when it fails; stopped when idle. */
export class HostedServer {
  readonly #deps: HostedServerDeps
  #server: NamedToolServer
  #connection: Connection | null = null
  #opening: Promise<Connection> | null = null
  readonly #failures: Failures
  readonly #offer: Offer
  readonly #requests: ServerRequests
  #readyAt: number | null = null
  #idle: Timer | null = null
  #again: Timer | null = null
  readonly #closing = new AbortController()
  /** What is being ended: a program may take its time. */
  readonly #ending = new Set<Promise<void>>()
  /** Ends one start, for those that only want the process gone. */
  #starting = new AbortController()

  constructor (server: NamedToolServer, deps: HostedServerDeps) {
    this.#server = server
    this.#deps = deps
    this.#failures = new Failures(deps.clock)
    this.#offer = new Offer(server, deps)
    this.#requests = new ServerRequests({
      config: deps.config,
      log: deps.log,
      server: () => this.#server,
      ready: signal => this.#ready(signal),
      lost: (connection, error) => this.#lost(connection, error),
      changed: () => this.#armIdle()
    })
  }

  get server (): NamedToolServer { return this.#server }

  get tools (): readonly OfferedTool[] { return this.#offer.tools(this.#server) }

  get instructions (): string | null { return this.#offer.instructions }

  get parts (): Offer['parts'] { return this.#offer.parts }

  isGated (tool: OfferedTool): boolean {
    return isGated(tool, this.#server.tools)
  }

  status (): ServerStatus {
    const pauseMs = this.#failures.pauseMs()
    return {
      state: this.#state(),
      pid: this.#connection?.pid ?? null,
      protocol: this.#connection?.client.getNegotiatedProtocolVersion() ?? null,
      ...this.#offer.status(this.#server),
      running: this.#requests.running,
      error: this.#failures.message,
      retryInMs: pauseMs === 0 ? null : pauseMs,
      log: count => this.#deps.log.last(count)
    }
  }

  /** Takes a changed record over: what runs is ended only when it would be run otherwise now. */
  async update (server: NamedToolServer): Promise<void> {
    const isOther = keyOf(server) !== keyOf(this.#server)
    this.#server = server
    if (isOther) this.#offer.replace(server)
    if (isOther || !server.enabled) {
      this.#failures.forgive()
      await this.stop('its configuration has changed')
    } else {
      this.#armIdle()
    }
  }

  /** Learns what it offers, where that is not known; fails into its state. */
  async learn (): Promise<void> {
    if (!this.#server.enabled || this.#offer.isKnown || this.#closing.signal.aborted) return
    await this.#ready(this.#closing.signal).then(() => this.#armIdle(), () => this.#learnAgain())
  }

  /** An operator's verb: past the back-off. */
  async start (signal: AbortSignal): Promise<void> {
    this.#failures.forgive()
    await this.#ready(signal)
    this.#armIdle()
  }

  /** From the call on no request goes to what runs now; resolves when it is gone. */
  async stop (why: string): Promise<void> {
    this.#idle?.cancel()
    this.#again?.cancel()
    const [connection, opening] = [this.#connection, this.#opening]
    this.#connection = null
    if (connection !== null) this.#tell('stopped', why)
    this.#starting.abort(mcpError('mcp.server_ended', `tool server ${this.#server.id} was stopped: ${why}`))
    this.#starting = new AbortController()
    await opening?.catch(() => undefined)
    if (connection !== null) await this.#end(connection)
  }

  /** Resolves when nothing of it runs any more, whatever ended it. */
  async close (): Promise<void> {
    this.#closing.abort(svcError('gateway.stopping', 'the gateway is shutting down'))
    await this.stop('the gateway stops')
    await Promise.all(this.#ending)
  }

  /** Throws `mcp.unknown_tool` and what the server fails with. */
  call (name: string, args: Readonly<Record<string, unknown>>, options: CallOptions): Promise<ToolAnswer> {
    return this.#requests.call(this.tools, name, args, options)
  }

  /** What is passed through as it is: resources and prompts. */
  pass (
    method: PassedMethod, params: Readonly<Record<string, unknown>>, signal: AbortSignal
  ): Promise<Readonly<Record<string, unknown>>> {
    return this.#requests.pass(method, params, signal)
  }

  async #ready (signal: AbortSignal): Promise<Connection> {
    const { id, enabled } = this.#server
    if (!enabled) throw mcpError('mcp.server_disabled', `tool server ${id} is disabled; enable it with PATCH /api/mcp/${id}/config`, { details: { id } })
    if (this.#connection !== null) return this.#connection
    if (this.#opening === null) {
      const pauseMs = this.#failures.pauseMs()
      if (pauseMs > 0) throw this.#failures.paused(id, pauseMs)
      this.#opening = this.#open().finally(() => { this.#opening = null })
    }
    return await abortable(this.#opening, signal)
  }

  async #open (): Promise<Connection> {
    const { clock, config, log } = this.#deps
    const server = this.#server
    const starting = this.#starting = new AbortController()
    const stop = (): void => starting.abort(this.#closing.signal.reason)
    this.#closing.signal.addEventListener('abort', stop, { once: true })
    const late = clock.setTimer(server.start_timeout_s * 1000, () => starting.abort(
      mcpError('mcp.server_failed', `tool server ${server.id} did not answer within its start_timeout_s of ${server.start_timeout_s} s`)))
    this.#failures.retried()
    log.begin()
    this.#tell('starting', isRemote(server) ? 'connecting' : 'starting')
    let connection: Connection | null = null
    try {
      connection = await connect(server, this.#deps, kind => this.#changed(kind), starting.signal)
      const learned = await learn(connection, starting.signal)
      starting.signal.throwIfAborted()
      this.#connection = connection
      this.#readyAt = clock.monotonic()
      this.#offer.take(this.#server, learned)
      this.#tell('running', `ready, ${learned.list.tools.length} tools`)
      for (const { name, reason } of learned.list.dropped) log.add('state', `tool ${name} is left out: ${reason}`)
      const open = connection
      void open.ended.then(why => this.#lost(open, mcpError('mcp.server_ended', `tool server ${this.#server.id} ${why}${log.lastWords()}`)))
      return connection
    } catch (error) {
      if (connection !== null) await this.#end(connection).catch(() => undefined)
      const reason: unknown = starting.signal.aborted ? starting.signal.reason : error
      const shown = isSvcError(reason) ? reason : mcpError('mcp.server_failed',
        `tool server ${server.id} cannot be used: ${callError(server.id, 'the greeting', reason, text => config.withoutSecrets(text)).message}${log.lastWords()}`,
        { details: { id: server.id }, cause: reason })
      // the code that stopped it has told so
      if (this.#starting === starting) this.#fail(shown, null)
      throw shown
    } finally {
      late.cancel()
      this.#closing.signal.removeEventListener('abort', stop)
    }
  }

  /** @param error what it failed with; null where the next connection will do */
  #lost (connection: Connection, error: SvcError | null): void {
    if (this.#connection !== connection) return
    this.#connection = null
    void this.#end(connection)
    if (error !== null) this.#fail(error, this.#readyAt)
  }

  /** A failure to end is in its log, also where the end is not waited for. */
  #end (connection: Connection): Promise<void> {
    const ending = connection.close().finally(() => { this.#ending.delete(ending) })
    this.#ending.add(ending)
    ending.catch((error: unknown) => this.#deps.log.add('state', messageOf(error)))
    return ending
  }

  #fail (error: SvcError, readyAt: number | null): void {
    this.#failures.add(error, readyAt)
    this.#tell('failed', error.message)
  }

  #learnAgain (): void {
    const waitMs = Math.max(LEARN_AGAIN_MS, this.#failures.pauseMs())
    if (!this.#failures.mayHeal) return
    this.#again?.cancel()
    this.#again = this.#deps.clock.setTimer(waitMs, () => void this.learn())
  }

  /** Called at most a few times a second, however often the server says so. */
  #changed (kind: ChangeKind): void {
    const connection = this.#connection
    if (connection === null) return
    this.#deps.log.add('state', `says that its ${kind} have changed`)
    learn(connection, this.#closing.signal).then(learned => this.#offer.take(this.#server, learned), (error: unknown) => {
      this.#deps.log.add('state', `cannot be asked for its ${kind}: ${messageOf(error)}`)
    })
  }

  #armIdle (): void {
    this.#idle?.cancel()
    const { idle_stop_s: idleS } = this.#server
    if (this.#requests.running > 0 || idleS === 0 || this.#connection === null) return
    this.#idle = this.#deps.clock.setTimer(idleS * 1000, () => {
      if (this.#requests.running === 0) this.stop(`idle for ${idleS} s`).catch(() => undefined)
    })
  }

  #state (): ServerState {
    if (!this.#server.enabled) return 'disabled'
    const isFar = isRemote(this.#server)
    if (this.#connection !== null) return isFar ? 'reachable' : 'running'
    if (this.#failures.message !== null) return isFar ? 'unreachable' : 'failed'
    if (this.#opening !== null) return 'starting'
    return 'stopped'
  }

  #tell (state: 'starting' | 'running' | 'stopped' | 'failed', message: string): void {
    const { id } = this.#server
    this.#deps.log.add('state', message)
    this.#deps.events.emit({
      type: 'mcp.server.state', severity: state === 'failed' ? 'error' : 'info', source: `mcp:${id}`, message: `${id}: ${message}`, data: { server: id, state }
    })
  }
}
