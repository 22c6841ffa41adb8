import { messageOf, type Clock, type Logger, type Timer } from 'svc-gateway/plugin'
import type { BoardCore } from './board-core.js'
import type { AgentRunner, DispatchSettings } from './ref.js'
import type { Claim, Ending } from './runs.js'

export interface DispatchDeps {
  readonly board: BoardCore
  readonly clock: Clock
  readonly log: Logger
  readonly settings: DispatchSettings
  /** In order of preference. */
  readonly runners: () => readonly AgentRunner[]
}

interface Running {
  readonly claim: Claim
  readonly abort: AbortController
  readonly done: Promise<void>
}

const LOG_EVERY_MS = 500

/**
 * Hands ready tasks to agents. The claim is in the database before the agent starts, so whatever ends first, gateway or
 * agent, the task goes on from there.
 */
export class Dispatch {
  readonly #deps: DispatchDeps
  readonly #running = new Map<string, Running>()
  #timer: Timer | null = null
  #unfollow: (() => void) | null = null
  #isQueued = false
  #isStopped = false

  constructor (deps: DispatchDeps) {
    this.#deps = deps
  }

  get active (): readonly Claim[] { return [...this.#running.values()].map(({ claim }) => claim) }

  /** Ends what an earlier gateway left, then looks after the board until `stop`. */
  async start (): Promise<void> {
    const { board, settings, log } = this.#deps
    for (const { id, handle } of board.runs.running()) {
      try {
        if (handle !== null) await Promise.all(this.#deps.runners().map(runner => runner.end(handle)))
      } catch (error) {
        log.warn({ run: id, error: messageOf(error) }, 'an agent of an earlier gateway could not be ended')
      }
      board.runs.end(id, { state: 'lost', message: 'the gateway ended while the agent worked' }, settings.failure_limit)
    }
    if (this.#isStopped) return
    this.#unfollow = board.follow(() => this.look())
    this.look()
    this.#later()
  }

  /** Looks soon: changes come in bunches. */
  look (): void {
    if (this.#isQueued || this.#isStopped) return
    this.#isQueued = true
    setImmediate(() => {
      this.#isQueued = false
      this.#endMoved()
      this.dispatch(Infinity)
    })
  }

  /** Starts agents for ready tasks, as many as may run. Returns how many. */
  dispatch (max: number): number {
    const { board, settings, runners } = this.#deps
    if (this.#isStopped) return 0
    board.runs.wakeScheduled()
    const able = runners().flatMap(runner => runner.agents().map(({ id }) => [id, runner] as const))
    if (able.length === 0) return 0
    const agents = new Map(able.toReversed())
    // those that are passed over below run still, so as many as may run are enough
    const ready = board.runs.ready([...agents.keys()], board.orchestration().default_assignee, settings.max_in_flight)
    let count = 0
    for (const { id, agent } of ready) {
      if (count >= max || this.#running.size >= settings.max_in_flight) break
      // the former agent of a task ends before the next one begins
      if (this.active.some(claim => claim.task.id === id)) continue
      const claim = board.runs.claim(id, agent)
      if (claim === null) continue
      this.#begin(claim, agents.get(agent)!)
      count++
    }
    return count
  }

  /** Ends the agent of a task and makes it ready again. Resolves when the agent has ended; false where none works at it. */
  async reclaim (task: string): Promise<boolean> {
    const running = [...this.#running.values()].find(({ claim }) => claim.task.id === task)
    running?.abort.abort(ending('stopped', 'the task was reclaimed'))
    await running?.done
    return running !== undefined
  }

  /** Ends all agents; their tasks are ready again. */
  async stop (): Promise<void> {
    this.#isStopped = true
    this.#unfollow?.()
    this.#timer?.cancel()
    const all = [...this.#running.values()]
    for (const { abort } of all) abort.abort(ending('stopped', 'the gateway stopped'))
    await Promise.all(all.map(({ done }) => done))
  }

  #later (): void {
    this.#timer = this.#deps.clock.setTimer(this.#deps.settings.tick_interval * 1000, () => {
      this.look()
      this.#later()
    })
  }

  #begin (claim: Claim, runner: AgentRunner): void {
    const abort = new AbortController()
    const done = this.#run(claim, runner, abort).finally(() => {
      this.#running.delete(claim.run)
      this.look()
    })
    this.#running.set(claim.run, { claim, abort, done })
  }

  /** Never rejects. */
  async #run ({ run, task, agent }: Claim, runner: AgentRunner, abort: AbortController): Promise<void> {
    const { board, clock, settings, log } = this.#deps
    const timer = clock.setTimer(settings.claim_ttl * 1000, () => {
      abort.abort(ending('timed_out', `the agent did not finish within ${settings.claim_ttl} seconds`))
    })
    const lines = new LogWriter(clock, text => {
      try {
        board.runs.addLog(run, text)
      } catch (error) {
        // as on a full disk: the run goes on without these lines, and its end is still written down
        log.warn({ run, err: error }, 'log lines of a run could not be saved')
      }
    })
    let result: Ending
    try {
      const { ok, message } = await runner.run({ run, agent, board: task.board, task: board.task(task.board, task.id) }, {
        signal: abort.signal, log: line => lines.add(line), keep: handle => board.runs.keep(run, handle)
      })
      result = endingOf(abort.signal) ?? { state: ok ? 'done' : 'failed', message: message.slice(0, 16 * 1024) }
    } catch (error) {
      result = endingOf(abort.signal) ?? { state: 'failed', message: messageOf(error).slice(0, 2000) }
    }
    timer.cancel()
    try {
      lines.close()
      board.runs.end(run, result, settings.failure_limit)
    } catch (error) {
      log.error({ run, err: error }, 'the end of a run could not be saved')
    }
  }

  /** Agents whose task was moved on by someone else, or deleted. An agent that moves its own task is left to finish. */
  #endMoved (): void {
    const { rows } = this.#deps.board.tasks
    for (const { claim, abort } of this.#running.values()) {
      const task = rows.find(claim.task.id)
      if (task === undefined) abort.abort(ending('stopped', 'the task was deleted'))
      else if (task.status !== 'running' && !this.#movedByItself(claim)) abort.abort(ending('stopped', `the task was moved to ${task.status}`))
    }
  }

  #movedByItself ({ task, agent }: Claim): boolean {
    const [last] = this.#deps.board.log.ofTask(task.id, 20).toReversed().filter(({ kind, json }) => kind === 'updated' && (json as { status?: string }).status !== undefined)
    return (last?.json as { actor?: string } | undefined)?.actor === `mcp:${agent}`
  }
}

/** Lines of a log, written a few times a second at most. */
class LogWriter {
  readonly #clock: Clock
  readonly #write: (text: string) => void
  #text = ''
  #timer: Timer | null = null

  constructor (clock: Clock, write: (text: string) => void) {
    this.#clock = clock
    this.#write = write
  }

  add (line: string): void {
    this.#text += `${line.slice(0, 4096)}\n`
    if (this.#text.length > 64 * 1024) this.#flush()
    else this.#timer ??= this.#clock.setTimer(LOG_EVERY_MS, () => this.#flush())
  }

  close (): void {
    this.#flush()
  }

  #flush (): void {
    this.#timer?.cancel()
    this.#timer = null
    if (this.#text === '') return
    const text = this.#text
    this.#text = ''
    this.#write(text)
  }
}

class EndingError extends Error {
  readonly ending: Ending

  constructor (end: Ending) {
    super(end.message)
    this.ending = end
  }
}

function ending (state: 'stopped' | 'timed_out', message: string): EndingError {
  return new EndingError({ state, message })
}

function endingOf ({ reason }: AbortSignal): Ending | null {
  return reason instanceof EndingError ? reason.ending : null
}
