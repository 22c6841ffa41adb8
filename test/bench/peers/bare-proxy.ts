import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Pool, type Dispatcher } from 'undici'

/**
 * The yardstick: the least a Node proxy can do. node:http in front, undici's raw dispatch behind, the body read
 * whole, bytes passed on with backpressure. No routing, no parsing, no ids, no cancellation bookkeeping.
 */
const pool = new Pool(process.argv[2]!, { headersTimeout: 0, bodyTimeout: 0 })
const hop = new Set(['connection', 'keep-alive', 'transfer-encoding', 'host', 'content-length'])

const server = createServer({ requestTimeout: 0 }, (req, res) => {
  const chunks: Buffer[] = []
  req.on('data', (chunk: Buffer) => chunks.push(chunk))
  req.on('end', () => {
    const headers: string[] = []
    for (let i = 0; i < req.rawHeaders.length; i += 2) {
      if (!hop.has(req.rawHeaders[i]!.toLowerCase())) headers.push(req.rawHeaders[i]!, req.rawHeaders[i + 1]!)
    }
    let abort: ((error?: Error) => void) | null = null
    res.on('close', () => { if (!res.writableFinished) abort?.(new Error('gone')) })
    const handler: Dispatcher.DispatchHandler = {
      onConnect (give) { abort = give },
      onHeaders (status, raw, resume) {
        const out: string[] = []
        for (let i = 0; i < raw.length; i += 2) {
          const name = raw[i]!.toString('latin1')
          if (!hop.has(name.toLowerCase()) || name.toLowerCase() === 'content-length') out.push(name, raw[i + 1]!.toString('latin1'))
        }
        res.on('drain', resume)
        res.writeHead(status, out)
        return true
      },
      onData: chunk => res.write(chunk),
      onComplete () { res.end() },
      onError () { res.destroy() }
    }
    pool.dispatch({ path: req.url!, method: req.method as Dispatcher.HttpMethod, headers, body: Buffer.concat(chunks) }, handler)
  })
})
server.listen(0, '127.0.0.1', () => process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`))
process.on('message', () => process.send!({ rss: process.memoryUsage().rss, cpu: process.cpuUsage() }))
process.on('disconnect', () => process.exit(0))
