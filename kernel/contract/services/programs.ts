import type { Readable, Writable } from 'node:stream'
import type { EngineAddress } from '../provider/engine-client.js'

/**
 * A third-party program that the gateway runs beside it and speaks to. Its environment is `env`, and as a process a few
 * names of the gateway's own.
 */
export interface ProgramSpec {
  /** What it is for: short, kebab-case. Part of its name and a label (`svc.task`). */
  readonly purpose: string
  readonly env: Readonly<Record<string, string>>
  readonly form:
    /**
     * `command`: a path, or a name that is looked up in PATH. No shell ever sees it or its arguments. It runs in `workingDir`,
     * which is there already; default is the gateway's.
     */
    | { readonly kind: 'process', readonly command: string, readonly args: readonly string[], readonly workingDir?: string }
    /** With a port it is spoken to over HTTP, published on loopback; without one over its standard streams. */
    | { readonly kind: 'container', readonly image: string, readonly args: readonly string[], readonly port: number | null }
}

export interface Program {
  /** Null for one that is spoken to over HTTP. Must be read, or it blocks. */
  readonly pipes: { readonly stdin: Writable, readonly stdout: Readable, readonly stderr: Readable } | null
  readonly address: EngineAddress | null
  readonly pid: number | null
  /** Its exit code (137 is SIGKILL, null if unknown) once it has ended, however it ended. Never rejects. */
  readonly ended: Promise<number | null>
  /** Asks it to end, kills it and all that it started after `graceS`, and forgets it. Idempotent. */
  stop (graceS: number): Promise<void>
}

export interface Programs {
  /**
   * Starts a program; pulls its image when it is not here. What it left running when the gateway was killed, the next gateway
   * ends at its start. Throws `runtime.unavailable` (no such program; no container engine), `runtime.failed`, and the signal's
   * reason.
   */
  run (
    spec: ProgramSpec, options: { readonly signal: AbortSignal, readonly onMessage?: (message: string) => void }
  ): Promise<Program>
}
