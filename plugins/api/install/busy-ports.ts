import { connect } from 'node:net'

/** Those of some ports that something listens on. */
export async function busyPorts (ports: readonly number[], host: string): Promise<ReadonlySet<number>> {
  const address = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
  const unique = [...new Set(ports)]
  const answers = await Promise.all(unique.map(port => answersAt(port, address)))
  return new Set(unique.filter((_, i) => answers[i]))
}

const PATIENCE_MS = 1000

function answersAt (port: number, host: string): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect({ port, host, timeout: PATIENCE_MS })
    const end = (answer: boolean) => (): void => {
      socket.destroy()
      resolve(answer)
    }
    socket.once('connect', end(true))
    socket.once('error', end(false))
    socket.once('timeout', end(false))
  })
}
