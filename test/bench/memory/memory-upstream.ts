import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { chatChunk, madeUpVector } from './memory-texts.js'

/** Stand-in for the engines beside a memory: a chat that says something every few milliseconds until it is left, and vectors. */
const PAUSE_MS = 5

const server = createServer((req, res) => {
  if (req.url === '/health') return void res.end('{}')
  if (req.method === 'GET') {
    const data = ['agent', 'embed'].map(id => ({ id, object: 'model' }))
    return void res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ object: 'list', data }))
  }
  const parts: Buffer[] = []
  req.on('data', (part: Buffer) => parts.push(part))
  req.on('end', () => {
    if (req.url === '/v1/embeddings') {
      const { input } = JSON.parse(Buffer.concat(parts).toString('utf8')) as { input: string[] }
      const data = input.map((text, index) => ({ object: 'embedding', index, embedding: madeUpVector(text) }))
      return void res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ object: 'list', data }))
    }
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    const timer = setInterval(() => { res.write(chatChunk) }, PAUSE_MS)
    res.on('close', () => clearInterval(timer))
  })
})
server.listen(0, '127.0.0.1', () => process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`))
process.on('message', () => process.send!({ rss: process.memoryUsage().rss, cpu: process.cpuUsage() }))
process.on('disconnect', () => process.exit(0))
