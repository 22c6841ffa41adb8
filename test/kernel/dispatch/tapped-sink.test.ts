import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Worker } from 'node:worker_threads'
import t from 'tap'
import type { AnswerTap } from '../../../kernel/contract/index.js'
import { ClientSink } from '../../../kernel/dispatch/answer/client-sink.js'
import { TappedSink } from '../../../kernel/dispatch/answer/tapped-sink.js'
import { recordingLog } from '../config/support.js'

const SSE = ['content-type', 'text/event-stream']
/** Of no meaning for the result: a client that never gets the words would hold the test forever. */
const LONGEST_MS = 60_000

/** A client in a thread of its own, which counts for `seen` what it has: nothing of it depends on this thread going on. */
const client = `
const { request } = require('node:http')
const { workerData: { port, seen }, parentPort } = require('node:worker_threads')
let text = ''
request({ port, host: '127.0.0.1' }, res => {
  res.setEncoding('utf8')
  res.on('data', piece => {
    text += piece
    if (!text.includes('first')) return
    Atomics.store(seen, 0, text.includes('last') ? 2 : 1)
    Atomics.notify(seen, 0)
  })
  res.on('end', () => parentPort.postMessage(text))
}).end()
`

t.test('what stands before a held part is with the client while the work for that part is done', async t => {
  const seen = new Int32Array(new SharedArrayBuffer(4))
  const atWork: number[] = []
  const tap: AnswerTap = {
    head: () => {},
    data: chunk => ({
      from: chunk.indexOf('data: last'),
      work: () => {
        Atomics.wait(seen, 0, 0, LONGEST_MS)
        atWork.push(Atomics.load(seen, 0))
      }
    }),
    end: () => {}
  }
  const server = createServer((_, res) => {
    const sink = new TappedSink(new ClientSink(res, 'r', () => {}), tap, () => null, recordingLog())
    sink.head(200, SSE)
    sink.data(Buffer.from('data: first\n\ndata: last\n\n'))
    sink.end()
  }).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const worker = new Worker(client, { eval: true, workerData: { port: (server.address() as AddressInfo).port, seen } })
  t.teardown(() => worker.terminate())
  const [text] = await once(worker, 'message') as [string]
  t.strictSame(atWork, [1], 'it has the first words, and not the last ones')
  t.equal(text, 'data: first\n\ndata: last\n\n')
})

t.test('work that fails takes nothing from the answer', async t => {
  const tap: AnswerTap = { head: () => {}, data: () => ({ from: 4, work: () => { throw new Error('no') } }), end: () => t.fail('it has failed before') }
  const server = createServer((_, res) => {
    const sink = new TappedSink(new ClientSink(res, 'r', () => {}), tap, () => null, recordingLog())
    sink.head(200, SSE)
    sink.data(Buffer.from('data: all\n\n'))
    sink.end()
  }).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  t.equal(await answer.text(), 'data: all\n\n')
})
