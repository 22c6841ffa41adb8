import { parentPort, workerData } from 'node:worker_threads'
import { request } from 'undici'

/** Reads a chat stream of the gateway at the given address for good; asked, it tells the pauses since it was last asked. */

const port = parentPort!
const { body } = await request(`${workerData as string}/v1/chat/completions`, {
  method: 'POST', headers: { 'content-type': 'application/json' }, bodyTimeout: 0,
  body: JSON.stringify({ model: 'models/agent', stream: true, messages: [{ role: 'user', content: 'go on' }] })
})
let last = performance.now()
let gaps: number[] = []
body.on('data', () => {
  const now = performance.now()
  gaps.push(now - last)
  last = now
})
// a stream that broke is a pause that goes on
body.on('error', () => {})
port.on('message', () => {
  port.postMessage([...gaps, performance.now() - last])
  gaps = []
})
port.postMessage('reading')
