import type { Readable } from 'node:stream'
import type { Command } from 'commander'
import type * as api from './client/client.js'
import { CliFailure } from './failure.js'
import { Interrupts, type SignalSource } from './interrupts.js'
import type { GatewayOfHome } from './offline/home/running-gateway.js'
import { Output, type Sink } from './terminal/output.js'
import type { OwnCommand } from './own-command.js'
import { askedBy, DEFAULT_BASE, targetOf } from './client/target.js'

/** The part of `process` that commands may use. */
export interface CliProcess extends SignalSource {
  readonly stdin: Readable & { readonly isTTY?: boolean }
  readonly stdout: Sink
  readonly stderr: Sink
  readonly pid: number
  cwd (): string
}

/** Where commands look that name neither a gateway nor a home. */
export interface Usual {
  readonly url: string
  /** Null is this system's home. */
  readonly home: string | null
}

/** What every command gets: the terminal, the signals, and the way to the gateway. */
export class Cli {
  readonly out: Output
  readonly interrupts: Interrupts
  readonly process: CliProcess
  readonly usual: Usual
  /** How users call this program. */
  readonly command: () => OwnCommand
  /** Addresses of the gateways that commands mean, or why there is none. */
  readonly #gateways = new WeakMap<Command, string | CliFailure>()
  /** Loaded before the first action: what only prints a help text needs none of it. */
  #api: typeof api | null = null

  constructor (process: CliProcess, command: () => OwnCommand, usual: Usual = { url: DEFAULT_BASE, home: null }) {
    this.process = process
    this.command = command
    this.usual = usual
    this.out = new Output(process, command)
    this.interrupts = new Interrupts(process)
  }

  /** What is asked of the gateway comes first, not last. */
  verbose = false

  get signal (): AbortSignal { return this.interrupts.signal }

  get env (): CliProcess['env'] { return this.process.env }

  /**
   * Finds out which gateway a command means: the one that is named, else the one of the home, else, where no home is named
   * either, whatever answers at the usual address. Comes before every action, and rejects for nothing that it finds.
   */
  async locate (command: Command): Promise<void> {
    this.#api ??= await import('./client/client.js')
    this.verbose = command.optsWithGlobals<{ verbose?: boolean }>().verbose === true
    const target = targetOf(askedBy(command, this.env))
    if (target.kind === 'gateway') {
      this.#gateways.set(command, target.url)
      return
    }
    const { gatewayOfHome } = await import('./offline/home/running-gateway.js')
    const home = target.kind === 'home' ? target.home : null
    const found = await gatewayOfHome(home ?? this.usual.home)
    // who names a home means that one, whatever listens at the usual address
    this.#gateways.set(command, found.state === 'listening' ? found.url : home === null ? this.usual.url : noGateway(home, found))
  }

  /** The gateway that a command means. Throws when it names a home that none runs on. */
  client (command: Command): api.ApiClient {
    const gateway = this.#gateways.get(command) ?? this.usual.url
    if (gateway instanceof CliFailure) throw gateway
    return this.clientAt(gateway)
  }

  /** As `client`, and null where that would throw. */
  gateway (command: Command): api.ApiClient | null {
    return this.#gateways.get(command) instanceof CliFailure ? null : this.client(command)
  }

  clientAt (url: string): api.ApiClient {
    return new this.#api!.ApiClient(url, this.signal)
  }
}

function noGateway (home: string, found: Exclude<GatewayOfHome, { readonly state: 'listening' }>): CliFailure {
  if (found.state === 'starting') return new CliFailure(`the gateway of ${home} (process ${found.pid}) is still starting`, { hints: ['Try it again in a moment.'] })
  if (found.state === 'closed') {
    return new CliFailure(`whether a gateway runs on ${home} cannot be determined (${found.code})`, {
      hints: ['Run it as the user of the gateway, or name its address with --url.']
    })
  }
  return new CliFailure(`no gateway runs on ${home}`, {
    hints: [`Start it with \`svc serve --home ${home}\`, or name another one with --url or SVC_API_URL.`]
  })
}
