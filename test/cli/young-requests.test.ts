import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { shippedProgram } from '../program.js'

const MIB = 2 ** 20
const ANSWER_BYTES = 90_000
const REQUESTS = 100
const MOST_LEFT = 2 * MIB

/** What buffers take in the gateway once its young generation was collected, and how often all of its heap was until then. */
interface Held { readonly bytes: number, readonly full: number }

const collecting = `const v8 = require('node:v8'), { PerformanceObserver, constants } = require('node:perf_hooks')
  let collect, full = 0
  process.channel?.unref()
  new PerformanceObserver(list => {
    for (const { detail } of list.getEntries()) if (detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR) full++
  }).observe({ entryTypes: ['gc'] })
  process.on('message', () => {
    if (collect === undefined) {
      v8.setFlagsFromString('--expose-gc')
      collect = require('node:vm').runInNewContext('gc')
    }
    collect({ type: 'minor' })
    // what is freed is counted by the next one
    setTimeout(() => process.send({ bytes: v8.getHeapStatistics().external_memory, full }), 20)
  })`

t.test('what a request and its answer were made of is freed by collections of the young generation', async t => {
  const upstream = createServer((request, answer) => {
    request.resume()
    answer.setHeader('content-type', 'application/json')
    const models = { object: 'list', data: [{ id: 'large', object: 'model' }] }
    answer.end(JSON.stringify(request.method === 'GET' ? models : { text: 'x'.repeat(ANSWER_BYTES) }))
  })
  await once(upstream.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => { upstream.closeAllConnections(); upstream.close() })
  const url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`
  const upstreams = `[[upstream]]\nname = "models"\nurl = "${url}"\nauth_style = "none"\n`
  const home = t.testdir({ 'collecting.cjs': collecting, 'etc': { svc: { 'upstreams.toml': upstreams } } })
  const gateway = spawn(process.execPath, [
    '--require', join(home, 'collecting.cjs'), shippedProgram(), 'serve', '--home', home, '--port', '0', '--ready-json'
  ], { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
  t.teardown(async () => {
    gateway.kill('SIGTERM')
    await once(gateway, 'exit')
  })
  const [line] = await once(gateway.stdout!, 'data') as [Buffer]
  const { url: origin } = JSON.parse(line.toString()) as { readonly url: string }
  const held = async (): Promise<Held> => {
    gateway.send('collect')
    const [found] = await once(gateway, 'message') as [Held]
    return found
  }
  const ask = async (path: string, body: object): Promise<void> => {
    for (let i = 0; i < REQUESTS; i++) {
      const answer = await fetch(`${origin}/v1${path}`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
      t.equal(answer.status, 200)
      await answer.arrayBuffer()
    }
  }

  for (const [path, body] of [
    ['/embeddings', { model: 'models/large', input: ['a'] }],
    ['/chat/completions', { model: 'models/large', messages: [{ role: 'user', content: 'a' }] }]
  ] as const) {
    await ask(path, body)
    let left = Infinity
    // a round in which all of the heap was collected tells nothing
    for (let round = 0; round < 10 && left === Infinity; round++) {
      const before = await held()
      await ask(path, body)
      let after = await held()
      // what is freed beside the program is counted a little later
      for (let i = 0; i < 20 && after.bytes - before.bytes > MOST_LEFT; i++) after = await held()
      if (after.full === before.full) left = after.bytes - before.bytes
    }
    t.ok(left < MOST_LEFT, `${path}: ${REQUESTS} answers of ${ANSWER_BYTES} bytes left ${(left / MIB).toFixed(1)} MiB`)
  }
})
