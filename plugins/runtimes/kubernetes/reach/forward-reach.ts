import { createServer, type Server, type Socket } from 'node:net'
import { svcError, type EngineAddress, type Logger } from 'svc-gateway/plugin'
import type { Pod } from '../api/objects.js'
import type { KeptLaunch } from '../pod/pod-names.js'
import { forward } from './port-forward.js'
import type { Reach, ReachApi } from './reach.js'

const HOST = '127.0.0.1'
/** Ended engines that are remembered: looks that began before an end are over soon after it. */
const MOST_DROPPED = 1_000

interface Door { readonly servers: readonly Server[], readonly sockets: Set<Socket> }

/** By the API server, from the same port of this host's loopback: for a try, since each connection is set up anew there. */
export class ForwardReach implements Reach {
  readonly #api: ReachApi
  readonly #log: Logger
  readonly #doors = new Map<string, Door>()
  readonly #opening = new Map<string, Promise<void>>()
  readonly #dropped = new Set<string>()

  constructor (api: ReachApi, log: Logger) {
    this.#api = api
    this.#log = log
  }

  async assertFree ({ port, ports = {} }: Pick<KeptLaunch, 'port' | 'ports'>): Promise<void> {
    for (const each of portsOf(port, ports)) {
      const server = await listen(each, () => {})
      await closed(server)
    }
  }

  async open (_pod: Pod, launch: KeptLaunch): Promise<void> {
    this.#dropped.delete(launch.id)
    await this.#opened(launch)
  }

  async address (_pod: Pod, launch: KeptLaunch): Promise<EngineAddress | null> {
    // a look that saw the pod before it ended would take the port for ever
    if (launch.port === null || this.#dropped.has(launch.id)) return null
    try {
      await this.#opened(launch)
    } catch (error) {
      this.#log.warn({ err: error, engine: launch.id }, 'a local port that forwards to an engine of the cluster is taken')
      return null
    }
    return { host: HOST, port: launch.port, ...(launch.ports === undefined ? {} : { ports: launch.ports }) }
  }

  async drop (id: string): Promise<void> {
    this.#dropped.add(id)
    for (const oldest of this.#dropped) {
      if (this.#dropped.size <= MOST_DROPPED) break
      this.#dropped.delete(oldest)
    }
    await this.#opening.get(id)?.catch(() => {})
    const door = this.#doors.get(id)
    this.#doors.delete(id)
    if (door === undefined) return
    for (const socket of door.sockets) socket.destroy()
    await Promise.all(door.servers.map(closed))
  }

  async close (): Promise<void> {
    await Promise.all([...this.#opening.values()].map(opening => opening.catch(() => {})))
    await Promise.all([...this.#doors.keys()].map(id => this.drop(id)))
  }

  async #opened (launch: KeptLaunch): Promise<void> {
    if (this.#doors.has(launch.id)) return
    const opening = this.#opening.get(launch.id) ?? this.#open(launch).finally(() => { this.#opening.delete(launch.id) })
    this.#opening.set(launch.id, opening)
    await opening
  }

  async #open ({ id, port, ports = {} }: KeptLaunch): Promise<void> {
    const sockets = new Set<Socket>()
    const servers: Server[] = []
    try {
      for (const each of portsOf(port, ports)) {
        servers.push(await listen(each, socket => {
          sockets.add(socket)
          socket.once('close', () => sockets.delete(socket))
          void forward(this.#api, id, each, socket, this.#log)
        }))
      }
    } catch (error) {
      await Promise.all(servers.map(closed))
      throw error
    }
    this.#doors.set(id, { servers, sockets })
  }
}

function portsOf (port: number | null, ports: Readonly<Record<string, number>>): readonly number[] {
  return [...port === null ? [] : [port], ...Object.values(ports)]
}

async function listen (port: number, taken: (socket: Socket) => void): Promise<Server> {
  const server = createServer(taken)
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(error.code === 'EADDRINUSE'
      ? svcError('slot.port_conflict', `port ${port} of this host, which forwards to the engine, is taken`, { details: { port } })
      : error))
    server.listen(port, HOST, resolve)
  })
  server.unref()
  return server
}

async function closed (server: Server): Promise<void> {
  await new Promise(resolve => { server.close(resolve) })
}
