import {
  mayHeal, messageOf, svcError, type CleanText, type Clock, type EngineAddress, type EngineClient, type EngineProvider,
  type EventBus, type Logger, type NamedSlotConfig, type SvcConfig
} from '../../contract/index.js'
import {
  LABEL_INSTANCE, LABEL_SLOT, type ContainerRuntime, type EngineInspection, type EngineSpec
} from '../../contract/provider/engine-runtime.js'
import { abortable, within } from '../../async/waiting.js'
import { withBudget } from '../../async/budget.js'
import type { ExitHub } from './watch/exit-hub.js'
import { lastWords, withoutNoise } from './engine/engine-words.js'
import { untilHealthy, type HealthProbe } from './watch/health.js'
import { fetchImage } from './image-fetch.js'
import { exitedEarly, overspent, toSvcError } from './launch-errors.js'
import type { Report } from './launch-report.js'
import type { Launched, PreparedLaunch } from '../plan/launch/prepared-launch.js'
import { inReplicaWords } from '../schedule/replica-names.js'
import type { Engine, LaunchFailure } from '../schedule/scheduled-slot.js'

export interface Budgets {
  readonly imagePullMs: number
  readonly modelFetchMs: number
  readonly startMs: number
  readonly healthMs: number
  readonly healthRefusedMs: number
  readonly stopS: number
}

export function launchBudgets ({ slots }: SvcConfig): Budgets {
  return {
    imagePullMs: slots.image_pull_timeout_s * 1000,
    modelFetchMs: slots.model_fetch_timeout_s * 1000,
    startMs: slots.start_timeout_s * 1000,
    healthMs: slots.health_timeout_s * 1000,
    healthRefusedMs: slots.health_refused_s * 1000,
    stopS: slots.stop_timeout_s
  }
}

export interface LauncherDeps {
  readonly runtime: ContainerRuntime
  readonly exits: ExitHub
  readonly clock: Clock
  readonly events: EventBus
  readonly log: Logger
  readonly probe: HealthProbe
  readonly budgets: () => Budgets
  readonly client: (address: EngineAddress, provider: EngineProvider) => EngineClient
  /** As the configuration has it at the moment. */
  readonly slot: (name: string) => NamedSlotConfig
  /** Takes secrets out of a line that an engine wrote. */
  readonly cleanLine: CleanText
}

/** How far a launch got. */
interface Attempted {
  readonly quiet: boolean
  readonly runs: boolean
  readonly isPrepared: boolean
  readonly provider: EngineProvider | null
}

const TAIL_LINES = 20
/** Read, so that enough is left once the polls of the health check are taken out. */
const RAW_TAIL_LINES = 100
const TAIL_TIMEOUT_MS = 10_000

/** Brings engines up and takes them down. Keeps no state of its own; every call cleans up after itself. */
export class Launcher {
  readonly #deps: LauncherDeps

  constructor (deps: LauncherDeps) {
    this.#deps = deps
  }

  /**
   * Prepares, fetches, creates, starts and waits until healthy. Rejects with a `LaunchFailure` once the engine
   * it made is gone again; aborted with `gateway.stopping`, an engine that runs is left for the next gateway.
   * `prepare` may throw a `SvcError` and checks the model under its own budget.
   */
  async launch (
    slot: string, prepare: (signal: AbortSignal) => Promise<PreparedLaunch>, signal: AbortSignal, report: Report
  ): Promise<Engine> {
    const { runtime, clock } = this.#deps
    const budgets = this.#deps.budgets()
    const budget = <T>(ms: number, doing: () => string, setting: string, work: (inner: AbortSignal) => Promise<T>): Promise<T> =>
      withBudget(clock, ms, signal, () => overspent(slot, doing(), ms, setting), work)
    let id: string | null = null
    let spec: EngineSpec | null = null
    let [isPrepared, runs] = [false, false]
    let provider: EngineProvider | null = null
    try {
      const prepared = await budget(budgets.modelFetchMs, () => 'fetching the model', 'model_fetch_timeout_s', prepare)
      await runtime.assertPortFree?.(prepared.spec)
      provider = prepared.provider
      isPrepared = true
      signal.throwIfAborted()
      await fetchImage(slot, prepared, { ...this.#deps, imagePullMs: budgets.imagePullMs }, signal, report)
      report('starting', `starting ${prepared.image?.ref ?? 'the engine'}`)
      let waitsFor = ''
      const told = (line: string): void => {
        waitsFor = `: ${line}`
        report('starting', line)
      }
      const startMs = runtime.startTimeoutMs?.(prepared.spec) ?? budgets.startMs
      await budget(startMs, () => `starting the engine${waitsFor}`, 'start_timeout_s', async inner => {
        await this.#removeStrays(prepared.spec)
        spec = prepared.spec
        id = await runtime.create(prepared.spec, inner)
        await runtime.start(id, inner, told)
      })
      runs = true
      return await this.#settle(slot, await this.#inspect(id!), prepared, signal, report, false)
    } catch (error) {
      throw await this.#failed(slot, id ?? await this.#unnamed(spec), error, { quiet: false, runs, isPrepared, provider })
    }
  }

  /** Waits until an engine that was found running is healthy. Removes it when it is not fit. */
  async adopt (slot: string, found: EngineInspection, launched: Launched, signal: AbortSignal, report: Report): Promise<Engine> {
    try {
      return await this.#settle(slot, found, launched, signal, report, true)
    } catch (error) {
      throw await this.#failed(slot, found.id, error, { quiet: true, runs: true, isPrepared: true, provider: launched.provider })
    }
  }

  /** Stops and removes, and resolves with the last log lines when the engine is really gone. */
  async stop (engineId: string, crashed: boolean, healthPath: string | null = null): Promise<readonly string[]> {
    const { runtime } = this.#deps
    if (!crashed) await runtime.stop(engineId, this.#deps.budgets().stopS)
    const tail = crashed ? await this.#tail(engineId, healthPath) : []
    await runtime.remove(engineId)
    return tail
  }

  async #settle (
    slot: string, found: EngineInspection, { provider, modelId, configHash, workers, headers }: Launched, signal: AbortSignal,
    report: Report, adopted: boolean
  ): Promise<Engine> {
    const { clock, exits, probe } = this.#deps
    const { healthMs } = this.#deps.budgets()
    const dead = new AbortController()
    const unwatch = exits.onExit(found.id, exit => dead.abort(exitedEarly(slot, exit.exitCode)))
    try {
      if (found.state !== 'running' || found.address === null) throw exitedEarly(slot, found.exitCode)
      const address = headers === null ? found.address : { ...found.address, headers }
      report('warming', adopted ? 'adopting a running engine' : 'loading the model')
      let said = ''
      const told = (summary: string, progress: number | null): void => {
        said = `; ${summary}`
        report('warming', summary, progress)
      }
      const refusedMs = (): number => this.#deps.budgets().healthRefusedMs
      let doing = `waiting for ${provider.health.path} to say that the model is loaded`
      const either = AbortSignal.any([signal, dead.signal])
      await withBudget(clock, healthMs, either, () => overspent(slot, `${doing}${said}`, healthMs, 'health_timeout_s'), async inner => {
        await untilHealthy({ probe, address, check: provider.health, clock, refusedMs, told }, inner)
        if (provider.warmUp === undefined) return
        [doing, said] = ['warming up', '']
        report('warming', 'warming up')
        const work = provider.warmUp(this.#deps.client(address, provider), inner, { slot: this.#deps.slot(slot), modelId })
        await warmUp(work, slot, inner)
      })
      // something may answer on the port although our engine is gone: health counts only while it runs
      const after = await this.#inspect(found.id)
      if (after.state !== 'running') throw exitedEarly(slot, after.exitCode)
      return { id: found.id, name: found.knownAs ?? found.name, address, label: found.label, configHash, adopted, workers }
    } finally {
      unwatch()
    }
  }

  async #inspect (id: string): Promise<EngineInspection> {
    const found = await this.#deps.runtime.inspect(id)
    if (found === null) throw svcError('runtime.not_found', 'the engine disappeared right after its start', { heals: true })
    return found
  }

  async #failed (
    slot: string, id: string | null, error: unknown,
    { quiet, runs, isPrepared, provider }: Attempted
  ): Promise<LaunchFailure> {
    const reason = toSvcError(slot, error)
    const { path } = provider?.health ?? { path: null }
    const kind = mayHeal(reason) ? 'heals' as const : isPrepared ? 'stays' as const : 'unfit' as const
    let failure = { code: reason.code, message: inReplicaWords(slot, reason.message), quiet, kind }
    if (id === null || (runs && reason.code === 'gateway.stopping')) return { ...failure, logTail: [], leftover: null }
    const logTail = await this.#tail(id, path)
    // of its own end an engine knows more than its exit code
    if (Object.hasOwn(reason.details, 'exit_code')) failure = { ...failure, message: `${failure.message}${lastWords(logTail)}` }
    try {
      await this.#deps.runtime.stop(id, this.#deps.budgets().stopS)
      await this.#deps.runtime.remove(id)
      return { ...failure, logTail, leftover: null }
    } catch (cleanup) {
      return {
        ...failure,
        message: `${failure.message}; and its engine could not be removed: ${messageOf(cleanup)}`,
        logTail,
        leftover: { id, address: { host: '', port: 0 }, label: '', configHash: '', adopted: false, workers: null }
      }
    }
  }

  /** A slot that launches has no engine: what bears its name was finished by the host after an earlier gateway had died. */
  async #removeStrays ({ labels }: EngineSpec): Promise<void> {
    const { runtime, log } = this.#deps
    const own = Object.fromEntries([LABEL_INSTANCE, LABEL_SLOT].map(label => [label, labels[label] ?? '']))
    for (const { id, name, state } of await runtime.list(own)) {
      log.warn({ engine: id, name, state }, 'removing an unknown engine of a slot')
      await runtime.remove(id)
    }
  }

  /** The engine of a `create` that was cut off before it told its id: found by the labels only it can carry. */
  async #unnamed (spec: EngineSpec | null): Promise<string | null> {
    if (spec === null) return null
    try {
      const [found] = await this.#deps.runtime.list(spec.labels)
      return found?.id ?? null
    } catch {
      // the container engine does not answer; the reconcile of the next start finds what may be left
      return null
    }
  }

  async #tail (id: string, healthPath: string | null): Promise<readonly string[]> {
    const lines: string[] = []
    try {
      await within(null, TAIL_TIMEOUT_MS, async signal => {
        for await (const line of this.#deps.runtime.logs(id, { tail: RAW_TAIL_LINES, follow: false, signal })) {
          lines.push(this.#deps.cleanLine(line))
        }
      })
    } catch {
      // the reason of the failure is known without its log; a log that cannot be read must not hide it
    }
    return withoutNoise(lines, healthPath).slice(-TAIL_LINES)
  }
}

/** The failure of a warm-up is the slot's: the engine may answer its health check for ever. */
async function warmUp (work: Promise<void>, slot: string, signal: AbortSignal): Promise<void> {
  try {
    await abortable(work, signal)
  } catch (error) {
    if (signal.aborted) throw signal.reason
    throw svcError('slot.load_failed', `the engine of slot '${slot}' is healthy but its warm-up failed: ${messageOf(error)}`,
      { details: { slot }, cause: error, heals: true })
  }
}
