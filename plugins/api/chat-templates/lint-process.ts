import { fork, type ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type Clock } from 'svc-gateway/plugin'
import { chatTemplateError } from './errors.js'
import type { LintResult } from './lint.js'

/** For one template, once the process is up; starting it may take longer on a busy machine. */
const TIME_MS = 2_000
const START_MS = 30_000
const MEMORY_MB = 128
/** Templates that callers may have in line: each takes up to two seconds, and a caller waits for a few at most. */
const MAX_WAITING = 8

interface Job {
  readonly source: string
  readonly resolve: (result: LintResult) => void
}

/**
 * Lints one template after the other in a process with bounds on time and memory and nothing of our environment. The
 * process ends when there is nothing left to do, or with the template that breaks a bound.
 */
export class LintProcess {
  readonly #clock: Clock
  readonly #queue: Job[] = []
  #child: Promise<ChildProcess | null> | null = null
  #running = false
  #closed = false

  constructor (clock: Clock) {
    this.#clock = clock
  }

  /** Throws `chat_template.busy` when too many are in line. */
  requireRoom (): void {
    if (this.#queue.length < MAX_WAITING) return
    throw chatTemplateError('chat_template.busy', `${MAX_WAITING} chat templates are already waiting to be checked; try again in a moment`,
      { details: { retry_after_s: Math.ceil(TIME_MS / 1000) } })
  }

  lint (source: string): Promise<LintResult> {
    return new Promise(resolve => {
      this.#queue.push({ source, resolve })
      if (!this.#running) void this.#work()
    })
  }

  /** What waits is told that it was not looked at. */
  async close (): Promise<void> {
    this.#closed = true
    await this.#end()
  }

  async #work (): Promise<void> {
    this.#running = true
    for (let job = this.#queue.shift(); job !== undefined; job = this.#queue.shift()) {
      const child = this.#closed ? null : await (this.#child ??= this.#start())
      job.resolve(child === null ? failed('could not be checked: the process for it does not start') : await this.#run(child, job.source))
    }
    this.#running = false
    await this.#end()
  }

  async #end (): Promise<void> {
    const child = this.#child
    this.#child = null
    ;(await child)?.kill('SIGKILL')
  }

  /** Null when it does not come up. */
  #start (): Promise<ChildProcess | null> {
    const child = fork(fileURLToPath(new URL('./lint-child.js', import.meta.url)), {
      execArgv: [`--max-old-space-size=${MEMORY_MB}`], env: {}, stdio: ['ignore', 'ignore', 'ignore', 'ipc']
    })
    return new Promise(resolve => {
      const settle = (up: ChildProcess | null): void => {
        timer.cancel()
        child.removeAllListeners()
        child.on('error', () => {})
        if (up === null) child.kill('SIGKILL')
        resolve(up)
      }
      const timer = this.#clock.setTimer(START_MS, () => settle(null))
      child.once('message', () => settle(child))
      child.once('exit', () => settle(null))
      child.once('error', () => settle(null))
    })
  }

  #run (child: ChildProcess, source: string): Promise<LintResult> {
    return new Promise(resolve => {
      const settle = (result: LintResult, broken: boolean): void => {
        timer.cancel()
        child.removeAllListeners('message').removeAllListeners('exit')
        resolve(result)
        if (broken) void this.#end()
      }
      const timer = this.#clock.setTimer(TIME_MS, () => settle(failed(`takes longer than ${TIME_MS / 1000} seconds`), true))
      child.once('message', result => settle(result as LintResult, false))
      child.once('exit', () => settle(failed(this.#closed ? 'the check was stopped' : `needs more than ${MEMORY_MB} MiB of memory`), true))
      child.send(source, error => { if (error !== null) settle(failed('the check was stopped'), true) })
    })
  }
}

function failed (error: string): LintResult {
  return { valid: false, error, line: null, warnings: [] }
}
