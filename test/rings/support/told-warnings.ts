import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import type { Test } from 'tap'

export interface Ear {
  /** In front of the gateway: every byte goes on. */
  readonly url: string
  /** What `x-svc-warning` has said since it was last taken, each once. */
  readonly take: () => string[]
}

const WARNING = /\r\nx-svc-warning: ([^\r\n]*)\r\n/gi
/** As much as a header and its name may stand in two pieces. */
const HELD_BYTES = 16 * 1024

/** Hears what the gateway at that address warns of. */
export async function hearsWarnings (t: Test, gateway: string): Promise<Ear> {
  const heard = new Set<string>()
  const sockets = new Set<Socket>()
  const { port, hostname } = new URL(gateway)
  const server = createServer(client => {
    const far = connect(Number(port), hostname)
    let held = ''
    far.on('data', chunk => {
      held = (held + chunk.toString('latin1')).slice(-HELD_BYTES - chunk.length)
      for (const [, said] of held.matchAll(WARNING)) for (const warning of said!.split('; ')) heard.add(warning)
    })
    for (const socket of [client, far]) {
      sockets.add(socket)
      socket.on('close', () => {
        sockets.delete(socket)
        client.destroy()
        far.destroy()
      })
      socket.on('error', () => {
        // the other side is closed by its close
      })
    }
    client.pipe(far)
    far.pipe(client)
  })
  await new Promise<void>(resolve => { server.listen(0, '127.0.0.1', resolve) })
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const take = (): string[] => {
    const told = [...heard]
    heard.clear()
    return told
  }
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, take }
}
