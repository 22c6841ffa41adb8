import type { EngineProvider } from '../../provider/provider.js'
import type { ProcessCandidate, ProviderContainerSpec } from '../../provider/provider-launch.js'

/** A program of an engine that does one thing and ends, unlike the engine of a slot. */
export interface EngineTask {
  /** What it is for: a short word, kebab-case. Part of its name and a label (`svc.task`). */
  readonly purpose: string
  /** Its image and device are those of the provider's slots. */
  readonly provider: EngineProvider
  readonly container: ProviderContainerSpec
  /** Ways to run it without a container, best first. */
  readonly processes: readonly ProcessCandidate[]
}

export interface EngineTaskOptions {
  readonly signal: AbortSignal
  /** Each line that it writes, without what could be a secret. */
  readonly onLine: (line: string) => void
  /** What the gateway does before it starts: how far the image is. */
  readonly onMessage?: (message: string) => void
}

/** Programs of engines, run once and as slots run: in a container where a container engine is in use, else as a process. */
export interface EngineTasks {
  /**
   * Throws what `run` would throw before it starts anything: `slot.load_failed` when this host lacks the provider's device,
   * `runtime.unavailable` when none of the programs is here, `slot.config_error` when there is no image.
   */
  check (task: EngineTask): Promise<void>
  /**
   * Fetches the image when it is not here, runs the program, and resolves with its exit code (137 is SIGKILL, null when
   * unknown) when it has ended and is removed. Rejects with the signal's reason once it is stopped and removed. What a
   * gateway that was killed left of it, the next one removes at its start.
   */
  run (task: EngineTask, options: EngineTaskOptions): Promise<number | null>
}
