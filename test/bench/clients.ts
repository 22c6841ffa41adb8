import { Agent, request } from 'node:http'
import { percentile } from './streams.js'

export interface ClientCall {
  readonly path: string
  readonly contentType: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body: Buffer
}

/** Times in milliseconds. */
export interface ClientsResult {
  readonly requestsPerS: number
  /** Bytes of bodies and answers together, in MiB a second. */
  readonly mibPerS: number
  readonly p50: number
  readonly p99: number
  readonly requests: number
  readonly errors: number
}

const MIB = 1024 * 1024

/** Some clients, each with one request at a time, for some seconds. */
export async function runClients (
  origin: string, { path, contentType, headers: more, body }: ClientCall, clients: number, seconds: number
): Promise<ClientsResult> {
  const agent = new Agent({ keepAlive: true, maxSockets: clients })
  const times: number[] = []
  let [bytes, errors] = [0, 0]
  const from = performance.now()
  const end = from + seconds * 1000
  const one = (): Promise<void> => new Promise(resolve => {
    const sent = performance.now()
    const headers = { 'content-type': contentType, 'content-length': body.length, ...more }
    const req = request(`${origin}${path}`, { method: 'POST', agent, headers }, res => {
      let size = 0
      res.on('data', (chunk: Buffer) => { size += chunk.length })
      res.on('close', () => {
        if (res.statusCode === 200 && res.complete) {
          times.push(performance.now() - sent)
          bytes += body.length + size
        } else {
          errors++
        }
        resolve()
      })
    })
    req.on('error', () => {
      errors++
      resolve()
    })
    req.end(body)
  })
  await Promise.all(Array.from({ length: clients }, async () => {
    do await one(); while (performance.now() < end)
  }))
  agent.destroy()
  const took = (performance.now() - from) / 1000
  const requests = times.length
  const [p50, p99] = [50, 99].map(part => percentile(times, part)) as [number, number]
  return { requestsPerS: requests / took, mibPerS: bytes / MIB / took, p50, p99, requests, errors }
}
