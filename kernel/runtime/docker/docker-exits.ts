import type { Readable } from 'node:stream'
import { messageOf, type Clock, type Logger, type Timer } from '../../contract/index.js'
import { LABEL_INSTANCE, type EngineExit, type EngineInspection } from '../../contract/provider/engine-runtime.js'
import type { DockerEngine } from './docker-connect.js'
import { ExitLedger, type Labels } from '../exit-ledger.js'
import { jsonLines } from './json-lines.js'
import { linkedAbort, pause } from '../../async/waiting.js'

const BACKOFF_MS = { first: 250, most: 10_000 }
/** Events can be lost without the connection breaking: Podman drops its followers when it rotates its event file. */
const RELIST_MS = 15_000
/** Attributes of an event that are no labels. */
const NOT_LABELS = new Set(['image', 'name', 'exitCode', 'containerExitCode', 'podId', 'execDuration', 'signal'])

export interface ExitWatchDeps {
  readonly engine: DockerEngine
  readonly clock: Clock
  readonly log: Logger
  readonly list: (labels: Labels) => Promise<readonly EngineInspection[]>
  readonly tell: (exit: EngineExit) => void
}

/**
 * Watches the ends of one instance's containers: an event stream that is opened again whenever it breaks, and a
 * list after each opening, because what ended in between is not reported.
 */
export class ExitWatch {
  readonly #deps: ExitWatchDeps
  readonly #instance: string
  readonly #ledger = new ExitLedger()
  readonly #stopping = new AbortController()
  #stream: Readable | null = null
  #relist: Timer | null = null
  #done: Promise<void>

  constructor (instance: string, deps: ExitWatchDeps) {
    this.#instance = instance
    this.#deps = deps
    this.#done = this.#run()
  }

  /** Something else saw this engine running. */
  running (id: string, labels: Labels): void {
    if (labels[LABEL_INSTANCE] === this.#instance) this.#ledger.running(id, labels)
  }

  starting (id: string): void {
    this.#ledger.starting(id)
  }

  async stop (): Promise<void> {
    this.#stopping.abort()
    this.#relist?.cancel()
    this.#stream?.destroy()
    await this.#done
  }

  async #run (): Promise<void> {
    const { clock, log, engine } = this.#deps
    const stopping = this.#stopping.signal
    let backoff = BACKOFF_MS.first
    while (!stopping.aborted) {
      try {
        const stream = await this.#open()
        backoff = BACKOFF_MS.first
        for await (const event of jsonLines(stream)) this.#onEvent(event)
      } catch (error) {
        if (!stopping.aborted) {
          log.warn({ endpoint: engine.endpoint.url, reason: messageOf(error) },
            'the event stream of the container engine broke; opening it again')
        }
      }
      this.#relist?.cancel()
      await pause(clock, backoff, stopping)
      backoff = Math.min(backoff * 2, BACKOFF_MS.most)
    }
  }

  /** The stream first and the list after it, so that no moment is left out. Events wait in the socket meanwhile. */
  async #open (): Promise<Readable> {
    const { engine } = this.#deps
    const filters = {
      type: ['container'],
      label: [`${LABEL_INSTANCE}=${this.#instance}`],
      // Podman calls the event died when it filters and die when it tells
      ...(engine.facts.kind === 'docker' ? { event: ['die'] } : {})
    }
    // its own signal, not the call's: the stream lives longer than the call
    const opening = linkedAbort(this.#stopping.signal)
    try {
      const stream = await engine.call('opening the event stream', () => engine.docker.getEvents({
        filters: JSON.stringify(filters), abortSignal: opening.controller.signal
      } as object)) as Readable
      this.#stream = stream
      stream.on('error', () => undefined) // its reader is told; without a reader it must not end the process
      await this.#reconcile()
      this.#planRelist(stream)
      return stream
    } catch (error) {
      opening.controller.abort()
      throw error
    } finally {
      opening.dispose()
    }
  }

  #planRelist (stream: Readable): void {
    if (this.#stopping.signal.aborted) return
    this.#relist = this.#deps.clock.setTimer(RELIST_MS, () => {
      // an engine that does not even list has lost us: the stream is opened anew
      this.#reconcile().then(() => this.#planRelist(stream), () => stream.destroy())
    })
  }

  async #reconcile (): Promise<void> {
    const before = this.#ledger.beforeList()
    const engines = await this.#deps.list({ [LABEL_INSTANCE]: this.#instance })
    for (const { id, labels, gone } of this.#ledger.listed(engines, before)) {
      this.#tell({ id, labels, exitCode: gone ? null : engines.find(engine => engine.id === id)?.exitCode ?? null })
    }
  }

  #onEvent (event: Readonly<Record<string, unknown>>): void {
    const { Action, Actor } = event as { Action?: unknown, Actor?: { ID?: unknown, Attributes?: Record<string, string> } }
    if (Action !== 'die' && Action !== 'died') return
    const id = Actor?.ID
    if (typeof id !== 'string' || !this.#ledger.ended(id)) return
    const attributes = Actor?.Attributes ?? {}
    const code = Number.parseInt(attributes.exitCode ?? attributes.containerExitCode ?? '', 10)
    this.#tell({
      id,
      labels: Object.fromEntries(Object.entries(attributes).filter(([name]) => !NOT_LABELS.has(name))),
      exitCode: Number.isNaN(code) ? null : code
    })
  }

  #tell (exit: EngineExit): void {
    if (!this.#stopping.signal.aborted) this.#deps.tell(exit)
  }
}
