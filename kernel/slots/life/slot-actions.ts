import type { EngineProvider } from '../../contract/index.js'
import type { EngineWork } from './watch/health-watch.js'
import type { Report } from './launch-report.js'
import type { Engine, ScheduledSlot } from '../schedule/scheduled-slot.js'

/** The effects a slot's owner asks for. Each promise settles exactly once, and only when nothing of the work is left. */
export interface SlotActions {
  /** Rejects with a `LaunchFailure` after it has cleaned up. The signal cancels in every phase. */
  launch (generation: number, signal: AbortSignal, report: Report): Promise<Engine>
  adopt (generation: number, signal: AbortSignal, report: Report): Promise<Engine>
  /** Resolves with the engine's last log lines once the engine is really gone. */
  stop (engine: Engine, crashed: boolean): Promise<readonly string[]>
  /** Asks an engine whose connection broke whether it is still there: null when it is, else what is wrong with it. */
  probe (engine: Engine, signal: AbortSignal): Promise<string | null>
  /** Watches a running engine until the signal aborts; calls back once when it is no longer healthy. */
  watch (engine: Engine, work: EngineWork, lost: (message: string) => void, signal: AbortSignal): void
  provider (): EngineProvider
  modelId (): string | null
  /** Milliseconds; null is never. Read every time, so that changes apply live. */
  softIdleMs (): number | null
  idleTimeoutMs (): number | null
  drainMs (): number
  /** How many may wait for a lease. */
  queueBound (): number
  /** Called after every input that changed the core. Must not throw and must not call the owner. */
  changed (core: ScheduledSlot, before: ScheduledSlot): void
}
