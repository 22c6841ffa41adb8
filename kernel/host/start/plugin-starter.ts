import { setMaxListeners } from 'node:events'
import { isSvcError, messageOf, type Clock, type ErrorCode, type Logger } from '../../contract/index.js'
import { withDeadline } from './deadline.js'
import { failureText } from '../watch/failure-text.js'
import { inPlugin } from '../watch/plugin-scope.js'
import { fail, isAlive, nameOf, skip, type PluginRecord } from '../record/record.js'

const START_DEADLINE_MS = 30_000
const STOP_DEADLINE_MS = 10_000

/** Runs the start and stop hooks of plugins and remembers who was started, to stop them in reverse order. */
export class PluginStarter {
  readonly #clock: Clock
  readonly #log: Logger
  readonly #stopping = new AbortController()
  #started: PluginRecord[] = []

  constructor ({ clock, log }: { readonly clock: Clock, readonly log: Logger }) {
    this.#clock = clock
    this.#log = log
    setMaxListeners(0, this.#stopping.signal) // one for each plugin that starts
  }

  /** Starts what is alive once `ready` settles, consumers after their providers, otherwise together. Never rejects. */
  async start (records: readonly PluginRecord[], ready: Promise<void> = Promise.resolve()): Promise<void> {
    const alive = records.filter(record => isAlive(record) && record.stage !== null)
    const byService = new Map(alive.flatMap(record => (record.plugin!.provides ?? []).map(ref => [ref.id, record] as const)))
    // in dependency order: what a plugin waits for has its promise already
    for (const record of alive) {
      const needs = Object.values(record.plugin!.requires ?? {}).flatMap(ref => byService.get(ref.id) ?? [])
      record.started = ready.then(() => this.#startOne(record, needs)).finally(() => { record.started = null })
    }
    await Promise.all(alive.map(record => record.started))
  }

  /** Start hooks that run are told to end and not waited for; none begins any more. */
  halt (): void {
    this.#stopping.abort(new Error('the gateway is stopping'))
  }

  /** Never rejects: one that fails to stop does not keep the others running. */
  async stop (records: readonly PluginRecord[]): Promise<void> {
    const leaving = this.#started.filter(record => records.includes(record)).reverse()
    for (const record of leaving) await this.#stopOne(record)
    for (const record of records) record.own.abort()
    this.#started = this.#started.filter(record => !leaving.includes(record))
  }

  /** After `halt`. Never rejects. */
  async stopAll (): Promise<void> {
    await Promise.all(this.#started.map(record => record.started))
    await this.stop(this.#started)
  }

  async #startOne (record: PluginRecord, needs: readonly PluginRecord[]): Promise<void> {
    await Promise.all(needs.map(need => need.started))
    if (!isAlive(record)) return
    if (this.#stopping.signal.aborted) return fail(record, 'start', 'plugin.start_failed', messageOf(this.#stopping.signal.reason))
    const culprit = needs.find(need => !isAlive(need))
    if (culprit !== undefined) return skip(record, 'start', nameOf(culprit))
    record.phase = 'start'
    const from = performance.now()
    this.#started.push(record)
    try {
      for (const hook of record.stage!.startHooks) await this.#runStart(record, hook)
      if (isAlive(record)) record.state = 'active'
    } catch (error) {
      const code = isSvcError(error) && error.code.startsWith('plugin.') ? error.code as ErrorCode : 'plugin.start_failed'
      fail(record, 'start', code, await failureText(error, record.candidate.root()))
      this.#log.error({ plugin: nameOf(record), phase: 'start', code, err: error }, 'plugin failed')
      await this.#stopOne(record)
      this.#started = this.#started.filter(other => other !== record)
    } finally {
      record.ms += performance.now() - from
    }
  }

  async #runStart (record: PluginRecord, hook: (signal: AbortSignal) => void | Promise<void>): Promise<void> {
    const own = new AbortController()
    let abort = (): void => {}
    const halted = new Promise<never>((_, reject) => { abort = () => reject(this.#stopping.signal.reason as Error) })
    this.#stopping.signal.addEventListener('abort', abort, { once: true })
    try {
      await Promise.race([halted, withDeadline(this.#clock, START_DEADLINE_MS, `onStart of '${nameOf(record)}'`, () =>
        inPlugin(record.name, () => hook(own.signal)))])
    } catch (error) {
      own.abort(error)
      throw error
    } finally {
      this.#stopping.signal.removeEventListener('abort', abort)
    }
  }

  async #stopOne (record: PluginRecord): Promise<void> {
    for (const hook of [...record.stage!.stopHooks].reverse()) {
      try {
        await withDeadline(this.#clock, STOP_DEADLINE_MS, `onStop of '${nameOf(record)}'`, () => inPlugin(record.name, hook))
      } catch (error) {
        this.#log.error({ plugin: nameOf(record), err: error }, 'plugin failed to stop')
      }
    }
  }
}
