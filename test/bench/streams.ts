import { createHash } from 'node:crypto'
import { Agent, request } from 'node:http'

export interface StreamsResult {
  readonly streams: number
  readonly completed: number
  /** Streams whose bytes are the same as those of a stream read from the upstream itself. */
  readonly identical: number
  /** Milliseconds, medians and 99th percentiles over all streams. */
  readonly ttftP50: number
  readonly ttftP99: number
  readonly gapP50: number
  readonly gapP99: number
}

const body = JSON.stringify({ model: 'agent', stream: true, messages: [{ role: 'user', content: 'stream' }] })

/** Opens `streams` streams, one every millisecond, and reads them to their ends. */
export async function runStreams (
  origin: string, streams: number, expected: string, onAllOpen: () => Promise<void> = async () => {}
): Promise<StreamsResult> {
  const agent = new Agent({ keepAlive: false, maxSockets: Infinity })
  const ttft: number[] = []
  const gaps: number[] = []
  const hashes: string[] = []
  let open = 0
  let allOpen: (() => void) = () => {}
  const opened = new Promise<void>(resolve => { allOpen = resolve })
  const one = async (i: number): Promise<void> => {
    await new Promise(resolve => { setTimeout(resolve, i) })
    const from = performance.now()
    let last = 0
    const hash = createHash('sha256')
    await new Promise<void>(resolve => {
      const req = request(`${origin}/v1/chat/completions`, { method: 'POST', agent, headers: { 'content-type': 'application/json' } }, res => {
        res.on('data', (chunk: Buffer) => {
          const now = performance.now()
          if (last === 0) {
            ttft.push(now - from)
            if (++open === streams) allOpen()
          } else {
            gaps.push(now - last)
          }
          last = now
          hash.update(chunk)
        })
        res.on('end', () => {
          if (res.complete) hashes.push(hash.digest('hex'))
          resolve()
        })
        res.on('error', () => resolve())
      })
      req.on('error', () => resolve())
      req.end(body)
    })
  }
  const running = Promise.all(Array.from({ length: streams }, (_, i) => one(i)))
  await Promise.race([opened, running])
  await onAllOpen()
  await running
  agent.destroy()
  return {
    streams,
    completed: hashes.length,
    identical: hashes.filter(hash => hash === expected).length,
    ttftP50: percentile(ttft, 50),
    ttftP99: percentile(ttft, 99),
    gapP50: percentile(gaps, 50),
    gapP99: percentile(gaps, 99)
  }
}

/** Hash of one stream read from the upstream itself. */
export async function expectedStream (origin: string): Promise<string> {
  const response = await fetch(`${origin}/v1/chat/completions`, { method: 'POST', body })
  return createHash('sha256').update(Buffer.from(await response.arrayBuffer())).digest('hex')
}

export function percentile (values: readonly number[], p: number): number {
  if (values.length === 0) return NaN
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * p / 100))]!
}
