import { createServer } from 'node:http'
import { chatAnswer } from '../../kernel/testing/fake-engine.js'

/** An engine that needs one second until it serves, its own start included, and says so as engines do. */
const LOADS_MS = 1_000

const loaded = (): boolean => performance.now() >= LOADS_MS
createServer((request, response) => {
  request.resume()
  response.writeHead(loaded() ? 200 : 503, { 'content-type': 'application/json' })
  response.end(request.url === '/health' ? '{}' : chatAnswer('hi'))
}).listen(Number(process.argv[2]), '127.0.0.1')
process.on('SIGTERM', () => process.exit(0))
