import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Socket } from 'node:net'

export type FakeRoute = (request: IncomingMessage, response: ServerResponse, url: URL) => void

export interface FakeContainer {
  readonly id: string
  readonly labels: Readonly<Record<string, string>>
  status: string
  exitCode: number
}

/**
 * A daemon that speaks as much of Docker's API as the driver uses and can be told to misbehave: each route of
 * `routes` (`METHOD /path`, without a version) wins over what it would do by itself.
 */
export class FakeDocker {
  readonly host: string
  readonly routes = new Map<string, FakeRoute>()
  readonly containers = new Map<string, FakeContainer>()
  readonly requests: string[] = []
  podman = false
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #followers = new Set<ServerResponse>()
  readonly #folder: string

  private constructor (folder: string) {
    this.#folder = folder
    this.host = `unix://${join(folder, 'docker.sock')}`
    this.#server = createServer((request, response) => this.#answer(request, response))
    this.#server.on('connection', socket => {
      this.#sockets.add(socket)
      socket.on('close', () => this.#sockets.delete(socket))
    })
  }

  static async start (): Promise<FakeDocker> {
    // short, because the path of a socket may have 107 bytes at most
    const fake = new FakeDocker(await mkdtemp(join(tmpdir(), 'svc-fake-')))
    await fake.listen()
    return fake
  }

  async listen (): Promise<void> {
    this.#server.listen(join(this.#folder, 'docker.sock'))
    await once(this.#server, 'listening')
  }

  /** As a daemon that is stopped: connections break, the socket goes away. */
  async down (): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  async close (): Promise<void> {
    if (this.#server.listening) await this.down()
    await rm(this.#folder, { recursive: true, force: true })
  }

  get openConnections (): number {
    return this.#sockets.size
  }

  get followers (): number {
    return this.#followers.size
  }

  emitDie (container: FakeContainer, attributes: object = {}): void {
    const event = {
      Type: 'container', Action: 'die', Actor: { ID: container.id, Attributes: { ...container.labels, name: 'x', image: 'y', exitCode: String(container.exitCode), ...attributes } }
    }
    for (const follower of this.#followers) follower.write(`${JSON.stringify(event)}\n`)
  }

  add (nibble: string, labels: Readonly<Record<string, string>>, status = 'running'): FakeContainer {
    const container = { id: nibble.repeat(64), labels, status, exitCode: 0 }
    this.containers.set(container.id, container)
    return container
  }

  #answer (request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? '/', 'http://docker')
    const key = `${request.method} ${url.pathname}`
    this.requests.push(`${key}${url.search}`)
    const route = this.routes.get(key) ?? this.#builtIn(key)
    if (route === undefined) json(response, 404, { message: `no route ${key}` })
    else route(request, response, url)
  }

  #builtIn (key: string): FakeRoute | undefined {
    if (key === 'GET /_ping') return (_request, response) => response.end('OK')
    if (key === 'GET /info') {
      const own = this.podman ? { BuildahVersion: '1.99' } : {}
      return (_request, response) => json(response, 200, { ServerVersion: '99.0', SecurityOptions: [], ...own })
    }
    if (key === 'GET /events') {
      return (_request, response) => {
        this.#followers.add(response)
        response.on('close', () => this.#followers.delete(response))
        response.writeHead(200).flushHeaders()
      }
    }
    if (key === 'GET /containers/json') {
      return (_request, response) => json(response, 200, [...this.containers.values()].map(({ id }) => ({ Id: id })))
    }
    const inspected = /^GET \/containers\/([0-9a-f]{64})\/json$/.exec(key)?.[1]
    const found = inspected === undefined ? undefined : this.containers.get(inspected)
    return found === undefined ? undefined : (_request, response) => json(response, 200, inspection(found))
  }
}

export function json (response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

function inspection ({ id, labels, status, exitCode }: FakeContainer): object {
  return {
    Id: id,
    Name: '/fake',
    State: { Status: status, ExitCode: exitCode, OOMKilled: false, StartedAt: '2025-01-01T00:00:00Z' },
    Config: { Labels: labels, Image: 'fake' },
    HostConfig: { NetworkMode: 'bridge', PortBindings: { '80/tcp': [{ HostIp: '127.0.0.1', HostPort: '80' }] } },
    NetworkSettings: { Ports: {} }
  }
}
