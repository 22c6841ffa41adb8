import { constants } from 'node:os'

/** Documented in README.md of this folder. */
export const exitCodes = { ok: 0, failed: 1, usage: 2, interrupted: 130 } as const

export interface FailureOptions {
  readonly exitCode?: number
  /** Lines below the message: what to do, or what was seen. */
  readonly hints?: readonly string[]
  /** What was asked of whom: of use to those who look for the cause. */
  readonly trace?: string
  readonly cause?: unknown
}

/** A failure in words for the one at the prompt; no stack is shown. */
export class CliFailure extends Error {
  readonly exitCode: number
  readonly hints: readonly string[]
  readonly trace: string | null

  constructor (message: string, options: FailureOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'CliFailure'
    this.exitCode = options.exitCode ?? exitCodes.failed
    this.hints = options.hints ?? []
    this.trace = options.trace ?? null
  }
}

/** The command line is invalid. */
export function usageFailure (message: string, hints: readonly string[] = []): CliFailure {
  return new CliFailure(message, { exitCode: exitCodes.usage, hints })
}

/** A signal ended the command; the exit code is the shell's. */
export class Interrupted extends Error {
  readonly exitCode: number

  constructor (signal: NodeJS.Signals) {
    super(`interrupted by ${signal}`)
    this.name = 'Interrupted'
    this.exitCode = 128 + constants.signals[signal]
  }
}

/** A program that ran in place of the command has ended; the exit code is its own. */
export class ProgramEnded extends Error {
  readonly exitCode: number

  constructor (exitCode: number) {
    super(`the program ended with ${exitCode}`)
    this.exitCode = exitCode
  }
}

/** Our output is no longer read, as with `| head`: ends the command silently. */
export class PipeClosed extends Error {
  readonly exitCode = exitCodes.ok

  constructor () {
    super('standard output was closed')
    this.name = 'PipeClosed'
  }
}

/** Ends the command silently, with the code that asks to be started again (EX_TEMPFAIL). */
export class RestartWanted extends Error {
  readonly exitCode = 75

  constructor () {
    super('the gateway must be restarted')
    this.name = 'RestartWanted'
  }
}
