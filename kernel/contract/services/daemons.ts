import type { MountSpec } from '../provider/provider-launch.js'

/** A program that runs beside the gateway until it is ended. */
export interface DaemonSpec {
  /** unique; part of its name and a label (`svc.daemon`). */
  readonly id: string
  /** Where it listens, in the host's network. */
  readonly host: string
  readonly port: number
  readonly env: Readonly<Record<string, string>>
  readonly form:
    /** `command` is an absolute path. */
    | { readonly kind: 'process', readonly command: string, readonly args: readonly string[], readonly workingDir: string }
    /** On the host's network; `command` null is the image's own. */
    | {
      readonly kind: 'container'
      readonly image: string
      readonly command: readonly string[] | null
      readonly mounts: readonly MountSpec[]
    }
}

export interface DaemonOptions {
  readonly signal: AbortSignal
  /** How far an image is. */
  readonly onMessage?: (message: string) => void
}

export interface DaemonStatus {
  /** `waiting`: it ended by itself and is started again in a moment. */
  readonly state: 'running' | 'waiting' | 'stopped'
  readonly form: 'process' | 'container' | null
  /** Epoch milliseconds of its start; null unless it runs. */
  readonly since: number | null
  /** How often it ended by itself since it was asked to run. */
  readonly failures: number
  /** Of its last end by itself; null when it is unknown, or there was none. */
  readonly exitCode: number | null
  /** Why it cannot be started again, or was not the last time; null when all is well. */
  readonly problem: string | null
}

/**
 * Programs run and supervised by the runtime of the slots. One that ends by itself is started again, at once the first time
 * and then at growing intervals. A gateway that is killed leaves them running and the next one adopts them; one that stops
 * ends its child processes and leaves containers.
 */
export interface DaemonService {
  /** Whether containers can be run here. */
  readonly hasContainers: boolean
  /** Ids of programs of this home that run. */
  found (): Promise<readonly string[]>
  /**
   * Makes sure that it runs: what already runs from an equal spec is adopted, anything else of that id is replaced. Fetches
   * the image when it is not here. Throws `slot.port_conflict` or a `runtime.*` error; nothing runs then.
   */
  run (spec: DaemonSpec, options: DaemonOptions): Promise<void>
  /** Has an image when it resolves. Throws `runtime.unavailable` where no containers can be run, `runtime.image_missing`. */
  fetch (image: string, options: DaemonOptions): Promise<void>
  /** Ends it and its supervision. Resolves when it is gone; nothing happens when nothing runs. */
  end (id: string): Promise<void>
  status (id: string): DaemonStatus
  /** Lines of its output, without what could be a secret. Nothing when it never ran. */
  logs (
    id: string, options: { readonly tail: number, readonly follow: boolean, readonly signal: AbortSignal }
  ): AsyncIterable<string>
  /** Called after each change of a program's state. Returns the unsubscriber. */
  onChange (listener: (id: string) => void): () => void
}
