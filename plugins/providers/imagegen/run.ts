import type { Clock, EngineClient } from 'svc-gateway/plugin'
import { randomUUID } from 'node:crypto'
import { bounded, CALL_TIMEOUT_MS } from './bounded.js'
import { ComfyUi } from './engine-api.js'
import type { HistoryEntry, ImageFile } from './history-entry.js'
import { runFailed, runLost, runSilent } from './engine-errors.js'
import { ProgressFeed, type ProgressMessage } from './progress.js'
import type { Graph } from './workflow.js'

export type RunStep =
  /** `ahead`: prompts that come before it. */
  | { readonly phase: 'queued', readonly ahead: number }
  | { readonly phase: 'running', readonly node: string | null, readonly value: number | null, readonly max: number | null }

export interface RunOptions {
  readonly client: EngineClient
  readonly clock: Clock
  readonly graph: Graph
  /** Longest time without any sign of progress; 0 is no limit. */
  readonly silenceMs: number
  /** False leaves the images with the engine. */
  readonly fetch?: boolean
  /** Called once the engine has it in its queue. */
  readonly onQueued?: (promptId: string) => void
  readonly onStep: (step: RunStep) => void
  readonly signal: AbortSignal
}

export interface RunResult {
  readonly promptId: string
  /** Images that it made, or had made before with the same graph. */
  readonly count: number
  readonly images: readonly Buffer[]
}

const POLL_MS = 500
/** While the engine's event stream is open, it is what says when to look. */
const LIVE_POLL_MS = 2_000
const CANCEL_TIMEOUT_MS = 5_000
/** Looks in a row that may fail, or find the prompt nowhere, before that is the truth. */
const PATIENCE = 3

/**
 * Runs one graph to its end: queues it, follows it, fetches its images. Whatever else ends it (the client, the gateway, a
 * failure) takes it out of the engine's queue or interrupts it there, before the promise settles.
 */
export async function runGraph (options: RunOptions): Promise<RunResult> {
  const { client, clock, graph, signal } = options
  signal.throwIfAborted()
  const engine = new ComfyUi(client)
  const watch = new RunWatch(options)
  const feed = new ProgressFeed(client.address, watch.clientId, message => watch.heard(message))
  try {
    await feed.ready(clock)
    signal.throwIfAborted()
    // not the client's signal: a submission that is cut off may be queued anyway, under an id that only its answer tells
    watch.promptId = await bounded(clock, CALL_TIMEOUT_MS, null, call =>
      engine.submit(graph, { clientId: watch.clientId, promptId: watch.promptId }, call))
    options.onQueued?.(watch.promptId)
    const entry = await watch.end(engine, feed)
    const files = outputFiles(entry)
    const images: Buffer[] = []
    if (options.fetch === false) return { promptId: watch.promptId, count: files.length, images }
    for (const file of files) images.push(await bounded(clock, CALL_TIMEOUT_MS, signal, call => engine.image(file, call)))
    return { promptId: watch.promptId, count: files.length, images }
  } catch (error) {
    await bounded(clock, CANCEL_TIMEOUT_MS, null, call => engine.cancel(watch.promptId, call)).catch(() => {
      // the engine is gone, and the prompt with it; or it does not listen, and there is nothing more to do
    })
    throw error
  } finally {
    feed.close()
  }
}

/** Follows one prompt. */
class RunWatch {
  readonly clientId = randomUUID()
  promptId: string = randomUUID()
  readonly #options: RunOptions
  #progressAt: number
  #wake: () => void = () => {}
  #heard = false
  #ahead = -1

  constructor (options: RunOptions) {
    this.#options = options
    this.#progressAt = options.clock.monotonic()
  }

  heard ({ type, promptId, node, value, max }: ProgressMessage): void {
    // the stream is this run's own; old releases name the prompt only here and there
    if (promptId !== null && promptId !== this.promptId) return
    if (type === 'status') return
    this.#progress()
    if (type === 'progress' || (type === 'executing' && node !== null)) {
      this.#options.onStep({ phase: 'running', node, value, max })
      return
    }
    // over, one way or another, or on its way: the history knows
    if (['executing', 'execution_success', 'execution_error', 'execution_interrupted', 'executed'].includes(type)) {
      this.#heard = true
      this.#wake()
    }
  }

  /** Resolves with the record of a run that succeeded. */
  async end (engine: ComfyUi, feed: ProgressFeed): Promise<HistoryEntry> {
    const { signal, clock, silenceMs } = this.#options
    let failures = 0
    let nowhere = 0
    for (;;) {
      signal.throwIfAborted()
      try {
        const found = await bounded(clock, CALL_TIMEOUT_MS, signal, call => this.#look(engine, call))
        failures = 0
        if (typeof found === 'object') return succeeded(found)
        nowhere = found === 'nowhere' ? nowhere + 1 : 0
      } catch (error) {
        signal.throwIfAborted()
        if (!isUnreachable(error) || ++failures >= PATIENCE) throw error
      }
      if (nowhere >= PATIENCE) throw runLost()
      if (silenceMs > 0 && clock.monotonic() - this.#progressAt > silenceMs) throw runSilent(Math.round(silenceMs / 1000))
      await this.#pause(feed.live && failures === 0 && nowhere === 0 ? LIVE_POLL_MS : POLL_MS)
    }
  }

  async #look (engine: ComfyUi, signal: AbortSignal): Promise<HistoryEntry | 'waits' | 'nowhere'> {
    const entry = await engine.history(this.promptId, signal)
    if (entry !== null) return entry
    const { running, pending } = await engine.queue(signal)
    if (running.includes(this.promptId)) {
      if (this.#ahead !== 0) this.#queued(0, { phase: 'running', node: null, value: null, max: null })
      return 'waits'
    }
    const at = pending.indexOf(this.promptId)
    if (at === -1) return 'nowhere'
    const ahead = at + running.length
    if (ahead !== this.#ahead) this.#queued(ahead, { phase: 'queued', ahead })
    return 'waits'
  }

  #queued (ahead: number, step: RunStep): void {
    this.#ahead = ahead
    this.#progress()
    this.#options.onStep(step)
  }

  #progress (): void {
    this.#progressAt = this.#options.clock.monotonic()
  }

  /** Until it is time to look again, something was heard, or the images are no longer wanted. */
  async #pause (ms: number): Promise<void> {
    const { clock, signal } = this.#options
    if (!this.#heard && !signal.aborted) {
      await new Promise<void>(resolve => {
        const timer = clock.setTimer(ms, resolve)
        const wake = (): void => {
          timer.cancel()
          resolve()
        }
        this.#wake = wake
        signal.addEventListener('abort', this.#wake, { once: true })
      })
      signal.removeEventListener('abort', this.#wake)
    }
    this.#heard = false
  }
}

function succeeded (entry: HistoryEntry): HistoryEntry {
  if (entry.status !== null && entry.status !== undefined && !entry.status.completed) throw runFailed(entry)
  return entry
}

/** Saved images of every output node, in the order of the nodes; previews only where nothing was saved. */
function outputFiles ({ outputs }: HistoryEntry): readonly ImageFile[] {
  const files = Object.values(outputs).flatMap(({ images = [] }) => images)
  const saved = files.filter(({ type }) => type === 'output')
  return saved.length > 0 ? saved : files
}

function isUnreachable (error: unknown): boolean {
  return (error as { code?: unknown }).code === 'dispatch.upstream_unavailable'
}
