import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { AnyPlugin, Logger, SlotService } from '../contract/index.js'
import { createGateway, type Gateway, type StartedGateway } from '../gateway.js'
import { UNDOCUMENTED } from '../http/openapi/answer-check.js'
import type { GatewayOptions } from '../gateway-options.js'

export interface TestGatewayOptions extends Omit<GatewayOptions, 'home' | 'host' | 'port' | 'log'> {
  readonly plugins?: readonly AnyPlugin[]
  /** Files under the home, by path: `etc/svc/slots/agent.toml`. */
  readonly files?: Readonly<Record<string, string>>
  /** A home that exists already; it is not removed. */
  readonly home?: string
  readonly log?: Logger
  readonly port?: number
}

export interface LogLine {
  readonly level: keyof Logger
  readonly message: string
  readonly fields: Readonly<Record<string, unknown>>
}

export interface TestGateway extends StartedGateway {
  readonly gateway: Gateway
  readonly slots: SlotService
  readonly home: string
  readonly logs: readonly LogLine[]
  fetch (path: string, init?: RequestInit): Promise<Response>
  /** Stops the gateway and removes its home. */
  close (): Promise<void>
}

/**
 * A whole gateway on a free port of 127.0.0.1 with a home of its own. Slots do not start by themselves unless
 * the files say so. Every JSON answer is checked against its schema; one whose status or content type the OpenAPI document
 * does not have is sent as a 500, and fails `close` as well.
 */
export async function createTestGateway (options: TestGatewayOptions = {}): Promise<TestGateway> {
  const { files = {}, home: given, log: givenLog, port = 0, ...rest } = options
  const home = given ?? await mkdtemp(join(tmpdir(), 'svc-test-'))
  const logs: LogLine[] = []
  // a home that was handed over is left as it is, but for the files that were asked for
  await writeFiles(home, given === undefined ? { 'etc/svc/svc.toml': '[slots]\nautostart = false\n', ...files } : files)
  // how full this machine is must not matter
  const gateway = createGateway({ checkAnswers: true, readMemory: () => Promise.resolve([]), ...rest, home, host: '127.0.0.1', port, log: givenLog ?? collect(logs) })
  try {
    const started = await gateway.start()
    return {
      ...started,
      gateway,
      slots: gateway.inference().slots,
      home,
      logs,
      fetch: (path, init) => fetch(`${started.baseUrl}${path}`, init),
      close: async () => {
        gateway.hurry()
        await gateway.stop()
        if (given === undefined) await rm(home, { recursive: true, force: true })
        const odd = logs.find(({ message }) => message.startsWith(UNDOCUMENTED))
        if (odd !== undefined) throw new Error(odd.message)
      }
    }
  } catch (error) {
    if (given === undefined) await rm(home, { recursive: true, force: true })
    throw error
  }
}

async function writeFiles (home: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    const target = join(home, path)
    await mkdir(dirname(target), { recursive: true })
    await writeFile(target, content)
  }
}

function collect (logs: LogLine[]): Logger {
  const line = (level: keyof Logger) => (first: object | string, message?: string): void => {
    logs.push(typeof first === 'string'
      ? { level, message: first, fields: {} }
      : { level, message: message ?? '', fields: first as Record<string, unknown> })
  }
  return { debug: line('debug'), info: line('info'), warn: line('warn'), error: line('error') }
}
