import { createServer } from 'node:http'
import { chatAnswer } from '../../../kernel/testing/fake-engine.js'

/** An engine that has one request at work at a time, for 20 ms of a device that is its own. */
const WORK_MS = 20

let last = Promise.resolve()
createServer((request, response) => {
  request.resume()
  const isWork = request.method === 'POST'
  const turn = isWork ? last = last.then(() => new Promise(resolve => { setTimeout(resolve, WORK_MS) })) : Promise.resolve()
  void turn.then(() => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(isWork ? chatAnswer('hi') : '{}')
  })
}).listen(Number(process.argv[2]), '127.0.0.1')
process.on('SIGTERM', () => process.exit(0))
