import { connect, createServer, type Server, type Socket } from 'node:net'
import { once } from 'node:events'

/** `stall`: takes connections and bytes, and nothing comes back. `cut`: breaks what there is and what comes. */
export type ProxyMood = 'pass' | 'stall' | 'cut' | 'delay'

const DELAY_MS = 400

/** Stands between a gateway and its container engine. */
export class DockerProxy {
  readonly #server: Server
  readonly #open = new Set<Socket>()
  #mood: ProxyMood = 'pass'
  #turned: Array<() => void> = []

  private constructor (server: Server) {
    this.#server = server
  }

  static async start (path: string, target: string): Promise<DockerProxy> {
    const server = createServer({ allowHalfOpen: true })
    const proxy = new DockerProxy(server)
    server.on('connection', client => proxy.#join(client, target))
    server.listen(path)
    await once(server, 'listening')
    return proxy
  }

  set mood (mood: ProxyMood) {
    this.#mood = mood
    if (mood === 'cut') for (const socket of this.#open) socket.destroy()
    if (mood === 'stall') return
    for (const turn of this.#turned.splice(0)) turn()
  }

  async close (): Promise<void> {
    this.mood = 'cut'
    this.#server.close()
    await once(this.#server, 'close')
  }

  #join (client: Socket, target: string): void {
    if (this.#mood === 'cut') return void client.destroy()
    const engine = connect({ path: target, allowHalfOpen: true })
    for (const [from, to] of [[client, engine], [engine, client]] as const) {
      this.#open.add(from)
      from.on('error', () => to.destroy())
      from.on('close', () => {
        this.#open.delete(from)
        to.destroy()
      })
      from.on('end', () => to.end())
      from.on('data', chunk => {
        from.pause()
        void this.#turn().then(() => {
          to.write(chunk)
          from.resume()
        })
      })
    }
  }

  /** When bytes may go on. */
  async #turn (): Promise<void> {
    while (this.#mood === 'stall') await new Promise<void>(resolve => { this.#turned.push(resolve) })
    if (this.#mood === 'delay') await new Promise(resolve => { setTimeout(resolve, DELAY_MS) })
  }
}
