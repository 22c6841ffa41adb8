import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { PassThrough, Writable } from 'node:stream'
import type { CliProcess, Usual } from '../../cli/cli.js'
import { main } from '../../cli/main.js'
import type { SignalHandler } from '../../cli/interrupts.js'
import { bin } from '../program.js'

export { bin }

export interface Finished { readonly code: number, readonly stdout: string, readonly stderr: string }

export interface FakeProcessOptions {
  readonly tty?: boolean
  readonly columns?: number
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly usual?: Usual
}

class Collected extends Writable {
  text = ''
  isTTY?: boolean
  columns?: number

  override _write (chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString('utf8')
    this.emit('text')
    done()
  }
}

/** A terminal or a pipe that the command line runs on, with signals that a test can send. */
export class FakeProcess implements CliProcess {
  readonly stdin = Object.assign(new PassThrough(), { isTTY: false })
  readonly stdout = new Collected()
  readonly stderr = new Collected()
  readonly env: Readonly<Record<string, string>>
  readonly pid = 1
  /** Stands still: what a busy machine does between two signals is no time. */
  readonly now = (): number => 0
  readonly exits: number[] = []
  readonly #handlers = new Map<string, SignalHandler>()
  readonly #cwd: string
  readonly #usual: Usual | undefined
  #ended: Promise<void> | undefined

  constructor ({ tty = false, columns, env = {}, cwd = '/', usual }: FakeProcessOptions = {}) {
    this.env = env
    this.#usual = usual
    this.#cwd = cwd
    this.stdin.isTTY = tty
    for (const stream of [this.stdout, this.stderr]) {
      if (tty) stream.isTTY = true
      if (columns !== undefined) stream.columns = columns
    }
  }

  on (event: NodeJS.Signals, listener: SignalHandler): void { this.#handlers.set(event, listener) }
  off (event: NodeJS.Signals): void { this.#handlers.delete(event) }
  exit (code: number): void { this.exits.push(code) }
  cwd (): string { return this.#cwd }
  send (signal: NodeJS.Signals): void { this.#handlers.get(signal)?.(signal) }

  run (...args: readonly string[]): Promise<Finished> {
    const code = main(['node', 'svc', ...args], this, this.#usual)
    this.#ended = code.then(() => {}, () => {})
    return code.then(code => ({ code, stdout: this.stdout.text, stderr: this.stderr.text }))
  }

  /** Resolves once the stream holds the text; rejects when the command ends without it. */
  async shows (stream: 'stdout' | 'stderr', text: string): Promise<void> {
    await this.showsOneOf(stream, [text])
  }

  /** Resolves with the text that stands first, once the stream holds one of them; rejects when the command ends without. */
  async showsOneOf<T extends string> (stream: 'stdout' | 'stderr', texts: readonly T[]): Promise<T> {
    let ended = false
    for (;;) {
      const { text: shown } = this[stream]
      const [first] = texts.filter(text => shown.includes(text)).sort((a, b) => shown.indexOf(a) - shown.indexOf(b))
      if (first !== undefined) return first
      if (ended) throw new Error(`it ended without '${texts.join('\' or \'')}': ${this.stdout.text}${this.stderr.text}`)
      const more = new AbortController()
      await Promise.race([
        once(this[stream], 'text', { signal: more.signal }).catch(() => {}),
        this.#ended?.then(() => { ended = true })
      ].filter(wait => wait !== undefined))
      more.abort()
    }
  }
}

/** Runs one command line in this process. */
export function run (args: readonly string[], options: FakeProcessOptions = {}): Promise<Finished> {
  return new FakeProcess(options).run(...args)
}

export interface SpawnedSvc {
  readonly child: ChildProcess
  readonly finished: Promise<Finished>
  /** The first line on standard output. */
  readonly firstLine: Promise<string>
  /** Resolves once it has said the text on standard error, with all that it has said there. */
  says (text: string): Promise<string>
}

/** The real thing. A test that ends early must kill the child by its id. */
export function spawnSvc (args: readonly string[], env: Readonly<Record<string, string>> = {}, program = bin): SpawnedSvc {
  const clean = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('SVC_')))
  const child = spawn(process.execPath, [program, ...args], { env: { ...clean, ...env }, stdio: ['pipe', 'pipe', 'pipe'] })
  const out = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) child[name].on('data', (chunk: Buffer) => { out[name] += chunk.toString('utf8') })
  const finished = once(child, 'close').then(([code, signal]) => ({ code: code === null ? -1 : Number(code), signal, ...out }))
  const firstLine = (async () => {
    while (!out.stdout.includes('\n')) await Promise.race([once(child.stdout, 'data'), finished.then(gone)])
    return out.stdout.split('\n', 1)[0]!
  })()
  // a test that waits for the end only does not care
  firstLine.catch(() => {})
  const says = async (text: string): Promise<string> => {
    while (!out.stderr.includes(text)) await Promise.race([once(child.stderr, 'data'), finished.then(gone)])
    return out.stderr
  }
  return { child, finished, firstLine, says }
}

function gone (finished: Finished): never {
  throw new Error(`svc ended with code ${finished.code} and no line: ${finished.stderr}`)
}

export interface SeenRequest {
  readonly line: string
  readonly body: unknown
  /** Settles when the client has closed the connection before the answer was complete. */
  readonly left: Promise<void>
}

export type Answer = object | string | ((request: SeenRequest, response: ServerResponse) => void | Promise<void>)

export interface FakeApi {
  readonly url: string
  readonly seen: SeenRequest[]
  /** Resolves with the first request of this line. */
  request (line: string): Promise<SeenRequest>
  close (): Promise<void>
}

/** Answers as the gateway's API would: by `METHOD /path`, with the error envelope for what it does not know. */
export async function fakeApi (answers: Readonly<Record<string, Answer>>): Promise<FakeApi> {
  const seen: SeenRequest[] = []
  const waiters: Array<() => void> = []
  const server = createServer((request, response) => { void serve(request, response) })
  async function serve (request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const text = Buffer.concat(chunks).toString('utf8')
    const left = new Promise<void>(resolve => {
      response.once('close', () => { if (!response.writableFinished) resolve() })
    })
    const record = { line: `${request.method} ${request.url}`, body: text === '' ? null : JSON.parse(text) as unknown, left }
    seen.push(record)
    for (const wake of waiters.splice(0)) wake()
    const answer = answers[record.line] ?? answers[record.line.split('?', 1)[0]!]
    if (answer === undefined) refuse(response, 404, 'system.http_404', `no route ${record.line}`)
    else if (typeof answer === 'function') await answer(record, response)
    else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    async request (line) {
      for (;;) {
        const found = seen.find(record => record.line === line)
        if (found !== undefined) return found
        await new Promise<void>(resolve => waiters.push(resolve))
      }
    },
    close: () => new Promise(resolve => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  }
}

export function refuse (response: ServerResponse, status: number, code: string, message: string, details: object = {}): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ error: { code, message, type: 'x', param: null, details, request_id: 'r' } }))
}

export function sse (response: ServerResponse): ServerResponse {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
  response.flushHeaders()
  return response
}

export function slotRecord (name: string, more: object = {}): object {
  return {
    name, kind: 'local', type: 'llm', state: 'offline', enabled: true, port: 8081, device: 'gpu-vulkan', backend: 'vulkan',
    provider: 'llm-server', profile: 'vulkan', model_id: null, model_default: 'qwen3-4b', ctx_max: 4096, models: [],
    metrics: { toks: 0, ttft: null }, metadata: { message: '', in_flight: 0, waiting: 0 }, ...more
  }
}
