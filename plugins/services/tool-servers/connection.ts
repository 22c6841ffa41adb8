import type { Client, Transport } from '@modelcontextprotocol/client'
import {
  createLineSplitter, messageOf, pause, type Clock, type ConfigService, type NamedToolServer, type Program, type Programs,
  type ProgramSpec, type ToolServerNetwork
} from 'svc-gateway/plugin'
import type { Dispatcher } from 'undici'
import { mcpError } from './errors.js'
import type { ServerLog } from './server-log.js'
import { launchOf } from './spec.js'
import { StdioTransport } from './stdio-transport.js'

/** How long a program may take to end when it is asked to. */
const GRACE_S = 5
/** For a server that listens already. A program gets half of its time: it may have to be downloaded before it can answer. */
const PROBE_MS = 10_000
const RETRY_MS = 250
/** A program that has closed its streams is about to end. */
const EXIT_WITHIN_MS = 5_000

export interface ConnectionDeps {
  readonly clock: Clock
  readonly config: ConfigService
  readonly programs: Programs
  readonly dispatcher: (network: ToolServerNetwork) => Dispatcher
  readonly log: ServerLog
  readonly version: string
}

/** What a server changed while it ran. */
export type ChangeKind = 'tools' | 'resources' | 'prompts'

export interface Connection {
  readonly client: Client
  readonly pid: number | null
  /** Over the standard streams of a program: it ends when that does. */
  readonly isPiped: boolean
  /** Resolves with why, once it is over. */
  readonly ended: Promise<string>
  close (): Promise<void>
}

/**
 * Runs or reaches a server and greets it, in whatever revision it speaks. Rejects with everything that it started ended
 * again.
 */
export async function connect (
  server: NamedToolServer, deps: ConnectionDeps, onChange: (kind: ChangeKind) => void, signal: AbortSignal
): Promise<Connection> {
  const launch = launchOf(server)
  const secrets = secretsOf(server, deps.config)
  if (launch.kind === 'remote') {
    const transport = await httpTransport(launch.url, headersOf(server.env, secrets), deps, server.network)
    return await greet(server, transport, null, deps, onChange, signal)
  }
  try {
    return await run(server, launch.form, secrets, deps, onChange, signal, 'auto')
  } catch (error) {
    if ((error as { code?: unknown } | null)?.code !== 'REQUEST_TIMEOUT') throw error
    deps.log.add('state', 'gives no answer to server/discover: it is greeted as an older server')
    return await run(server, launch.form, secrets, deps, onChange, signal, 'legacy')
  }
}

type Era = 'auto' | 'legacy'

async function run (
  server: NamedToolServer, form: ProgramSpec['form'], secrets: Readonly<Record<string, string>>, deps: ConnectionDeps,
  onChange: (kind: ChangeKind) => void, signal: AbortSignal, era: Era
): Promise<Connection> {
  const program = await deps.programs.run({ purpose: `tool-server-${server.id}`, env: { ...server.env, ...secrets }, form }, {
    signal, onMessage: message => deps.log.add('state', message)
  })
  let flood: string | null = null
  const flooded = new AbortController()
  try {
    if (program.pipes === null) return await greetOverHttp(server, program, deps, onChange, signal)
    readLines(program.pipes.stderr, line => deps.log.add('stderr', line))
    const transport = new StdioTransport({
      clock: deps.clock,
      pipes: program.pipes,
      onNoise: text => deps.log.add('stdout', text),
      onFlood: why => {
        flood = why
        // also one that was not greeted yet
        flooded.abort()
      }
    })
    const connection = await greet(server, transport, program, deps, onChange, AbortSignal.any([signal, flooded.signal]), era)
    return { ...connection, ended: connection.ended.then(why => flood ?? why) }
  } catch (error) {
    await program.stop(0)
    throw flood === null ? error : mcpError('mcp.server_failed', `tool server ${server.id} ${flood as string}`)
  }
}

/** A container says nothing of when it listens. */
async function greetOverHttp (
  server: NamedToolServer, program: Program, deps: ConnectionDeps, onChange: (kind: ChangeKind) => void, signal: AbortSignal
): Promise<Connection> {
  const { address } = program
  if (address === null) throw mcpError('mcp.server_failed', `the container of tool server ${server.id} has no port that can be reached`)
  let over = false
  void program.ended.then(() => { over = true })
  for (;;) {
    const transport = await httpTransport(`http://${address.host}:${address.port}${server.path}`, {}, deps)
    try {
      return await greet(server, transport, program, deps, onChange, signal)
    } catch (error) {
      signal.throwIfAborted()
      if (over) throw mcpError('mcp.server_failed', `the container of tool server ${server.id} ended before it listened${deps.log.lastWords()}`, { cause: error })
      await pause(deps.clock, RETRY_MS, signal)
    }
  }
}

async function greet (
  server: NamedToolServer, transport: Transport, program: Program | null, deps: ConnectionDeps,
  onChange: (kind: ChangeKind) => void, signal: AbortSignal, era: Era = 'auto'
): Promise<Connection> {
  const { Client } = await import('@modelcontextprotocol/client')
  const changed = (kind: ChangeKind) => ({ autoRefresh: false, onChanged: () => onChange(kind) })
  const client = new Client({ name: 'svc', version: deps.version }, {
    // nothing here can answer for the caller: a server that asks is told so
    capabilities: {},
    versionNegotiation: { mode: era, probe: { timeoutMs: program?.pipes == null ? PROBE_MS : server.start_timeout_s * 500 } },
    inputRequired: { autoFulfill: false },
    listChanged: { tools: changed('tools'), resources: changed('resources'), prompts: changed('prompts') },
    jsonSchemaValidator: { getValidator: () => value => ({ valid: true, data: value as never, errorMessage: undefined }) }
  })
  let end = (_why: string): void => {}
  const ended = new Promise<string>(resolve => { end = resolve })
  /** The exit tells more than the end of a stream, and comes a moment later. */
  const exit = async (): Promise<number | null | undefined> => program === null ? undefined
    : await Promise.race([program.ended, pause(deps.clock, isOver(program) ? EXIT_WITHIN_MS : 0).then(() => undefined)])
  const closed = (): void => {
    if (program === null) end('closed the connection')
    else void exit().then(code => end(endText(code)))
  }
  client.onclose = closed
  void program?.ended.then(code => end(endText(code)))
  const failed = (error: Error): void => deps.log.add('state', messageOf(error))
  client.onerror = failed
  const options = { signal, timeout: server.start_timeout_s * 1000 }
  try {
    await client.connect(transport, options)
  } catch (error) {
    const code = await exit()
    await client.close().catch(() => undefined)
    signal.throwIfAborted()
    throw code === undefined ? error : mcpError('mcp.server_failed', `tool server ${server.id} ${endText(code)}${deps.log.lastWords()}`, { cause: error })
  }
  return {
    client,
    pid: program?.pid ?? null,
    isPiped: program !== null && program.pipes !== null,
    ended,
    async close () {
      await client.close().catch(() => undefined)
      await program?.stop(GRACE_S)
    }
  }
}

/** What it is sent fails before the end of what it wrote is read: a program that ends at once is told by either. */
function isOver ({ pipes }: Program): boolean {
  return pipes !== null && (pipes.stdin.errored !== null || pipes.stdout.readableEnded || pipes.stdout.destroyed)
}

function endText (code: number | null | undefined): string {
  if (code === undefined || code === null) return 'ended'
  return code === 137 ? 'was killed, probably out of memory' : `ended with exit code ${code}`
}

async function httpTransport (
  url: string, headers: Readonly<Record<string, string>>, { dispatcher, clock }: ConnectionDeps,
  network: ToolServerNetwork = 'any'
): Promise<Transport> {
  const { HttpTransport } = await import('./http-transport.js')
  return new HttpTransport({ url, headers, dispatcher: dispatcher(network), clock })
}

/** Values of api.env by the names that the record binds them to. */
function secretsOf ({ id, secrets }: NamedToolServer, config: ConfigService): Record<string, string> {
  const known = config.secretNames()
  return Object.fromEntries(Object.entries(secrets).map(([name, key]) => {
    const value = known.includes(key) ? config.secret(key) : undefined
    if (value === undefined) {
      throw mcpError('mcp.secret_missing', `tool server ${id} needs ${key}, which api.env does not have; set it with PUT /api/secrets/${key}`,
        { details: { id, name: key } })
    }
    return [name, value]
  }))
}

/** For a server with a url, both tables are headers; a bare token is a bearer token. */
function headersOf (env: Readonly<Record<string, string>>, secrets: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries({ ...env, ...secrets })
    .map(([name, value]) => [name, name.toLowerCase() === 'authorization' && !value.includes(' ') ? `Bearer ${value}` : value]))
}

/** Lines as they come, long ones in pieces. */
function readLines (stream: NodeJS.ReadableStream, take: (line: string) => void): void {
  const splitter = createLineSplitter()
  const takeAll = (lines: readonly string[]): void => { for (const line of lines) if (line.trim() !== '') take(line) }
  stream.on('data', (chunk: Buffer) => takeAll(splitter.push(chunk)))
  stream.on('end', () => takeAll(splitter.end()))
}
