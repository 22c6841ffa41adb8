import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { z } from 'zod'
import { within } from '../../kernel/contract/index.js'
import { CliFailure } from '../failure.js'
import { programFile } from '../program-file.js'
import { readableLogLine } from './log-line.js'

const readySchema = z.looseObject({ url: z.string(), pid: z.number() })

const KEPT_LOG_LINES = 30
/** Longer than the grace for running answers and the time engines get to stop. */
const STOP_MS = 60_000

/**
 * A gateway of its own as a child process. It has a session of its own, so that Ctrl-C at the prompt reaches only us, and
 * it stops by itself when we are gone: its standard input ends then.
 */
export class GatewayChild {
  readonly #child: ChildProcess
  readonly #log: string[] = []
  readonly #exited: Promise<string>

  constructor (args: readonly string[], cwd: string) {
    this.#child = spawn(process.execPath, [programFile, 'serve', '--ready-json', '--stop-on-stdin-end', ...args], {
      cwd, detached: true, stdio: ['pipe', 'pipe', 'pipe']
    })
    createInterface({ input: this.#child.stderr! }).on('line', line => {
      this.#log.push(line)
      if (this.#log.length > KEPT_LOG_LINES) this.#log.shift()
    })
    this.#exited = new Promise(resolve => {
      this.#child.once('error', error => resolve(error.message))
      // 'close' comes after the last log line
      this.#child.once('close', (code, signal) => resolve(signal ?? `exit code ${code ?? 'unknown'}`))
    })
    this.#child.stdin!.on('error', () => {})
  }

  get running (): boolean { return this.#child.exitCode === null && this.#child.signalCode === null }

  /** What it wrote last, for people. */
  get log (): readonly string[] { return this.#log.map(line => readableLogLine(line, { coloured: false })) }

  /** Resolves with its address. Rejects when it ends before it listens, takes too long, or the signal aborts. */
  async ready (timeoutMs: number, signal: AbortSignal): Promise<string> {
    const lines = createInterface({ input: this.#child.stdout! })
    return await within(signal, timeoutMs, async bound => {
      try {
        const line = await Promise.race([
          once(lines, 'line', { signal: bound }).then(([first]) => first as string),
          this.#exited.then(how => { throw new CliFailure(`the gateway did not start (${how})`) })
        ])
        return readySchema.parse(JSON.parse(line)).url
      } catch (error) {
        signal.throwIfAborted()
        if (bound.aborted) throw new CliFailure(`the gateway did not start within ${timeoutMs / 1000} s`)
        throw error
      }
    })
  }

  /** Stops it cleanly and waits until it is gone, with its engines. Rejects when it did not stop cleanly. */
  async stop (): Promise<void> {
    this.#child.kill('SIGTERM')
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), STOP_MS)
    const how = await this.#exited
    clearTimeout(timer)
    if (how !== 'exit code 0') throw new CliFailure(`the gateway did not stop cleanly (${how})`)
  }
}
