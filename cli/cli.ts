import type { Readable } from 'node:stream'
import type { Command } from 'commander'
import { ApiClient, DEFAULT_BASE } from './client.js'
import { Interrupts, type SignalSource } from './interrupts.js'
import { Output, type Sink } from './output.js'

/** The part of `process` that commands may use. */
export interface CliProcess extends SignalSource {
  readonly stdin: Readable & { readonly isTTY?: boolean }
  readonly stdout: Sink
  readonly stderr: Sink
  readonly pid: number
  cwd (): string
}

/** What every command gets: the terminal, the signals, and the way to the gateway. */
export class Cli {
  readonly out: Output
  readonly interrupts: Interrupts
  readonly process: CliProcess

  constructor (process: CliProcess) {
    this.process = process
    this.out = new Output(process)
    this.interrupts = new Interrupts(process)
  }

  get signal (): AbortSignal { return this.interrupts.signal }

  get env (): CliProcess['env'] { return this.process.env }

  /** The gateway that `--url` of the command line names. */
  client (command: Command): ApiClient {
    const { url } = command.optsWithGlobals<{ url?: string }>()
    return this.clientAt(url ?? DEFAULT_BASE)
  }

  clientAt (url: string): ApiClient {
    return new ApiClient(url, this.signal)
  }
}
