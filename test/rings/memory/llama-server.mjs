#!/usr/bin/env node
// An engine of the gateway that hands what it is asked to the models at RING_MODELS: both memories ask the same ones.
// It ends with its gateway, also where that is killed.
import { createServer } from 'node:http'
import { parseArgs } from 'node:util'

const { values: { host, port } } = parseArgs({ strict: false, options: { host: { type: 'string' }, port: { type: 'string' } } })
const gateway = process.ppid
setInterval(() => { if (process.ppid !== gateway) process.exit() }, 500)
createServer(async (request, response) => {
  if (!request.url.startsWith('/v1/')) return response.end('{"status":"ok"}')
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  const answer = await fetch(process.env.RING_MODELS + request.url.slice('/v1'.length), {
    method: request.method, headers: { 'content-type': 'application/json' }, ...request.method === 'POST' ? { body: Buffer.concat(chunks) } : {}
  })
  response.writeHead(answer.status, { 'content-type': 'application/json' }).end(Buffer.from(await answer.arrayBuffer()))
}).listen(Number(port), host)
