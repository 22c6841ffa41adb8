import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Pool, type Dispatcher } from 'undici'

/** The second yardstick: as the bare proxy, but of all headers only the content type goes on, in both directions. */
const pool = new Pool(process.argv[2]!, { headersTimeout: 0, bodyTimeout: 0 })

function contentType (raw: readonly Buffer[]): string {
  for (let i = 0; i < raw.length; i += 2) {
    if (raw[i]!.length === 12 && raw[i]!.toString('latin1').toLowerCase() === 'content-type') return raw[i + 1]!.toString('latin1')
  }
  return ''
}

const server = createServer({ requestTimeout: 0 }, (req, res) => {
  const chunks: Buffer[] = []
  req.on('data', (chunk: Buffer) => chunks.push(chunk))
  req.on('end', () => {
    const handler: Dispatcher.DispatchHandler = {
      onConnect () {},
      onHeaders (status, raw, resume) {
        res.on('drain', resume)
        res.writeHead(status, ['content-type', contentType(raw)])
        return true
      },
      onData: chunk => res.write(chunk),
      onComplete () { res.end() },
      onError () { res.destroy() }
    }
    const headers = ['content-type', req.headers['content-type'] ?? '']
    pool.dispatch({ path: req.url!, method: req.method as Dispatcher.HttpMethod, headers, body: Buffer.concat(chunks) }, handler)
  })
})
server.listen(0, '127.0.0.1', () => process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`))
process.on('message', () => process.send!({ rss: process.memoryUsage().rss, cpu: process.cpuUsage() }))
process.on('disconnect', () => process.exit(0))
