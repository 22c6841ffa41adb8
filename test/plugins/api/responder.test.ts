import { syncBuiltinESMExports } from 'node:module'
import workerThreads, { BroadcastChannel } from 'node:worker_threads'
import t from 'tap'
import { Responder } from '../../../plugins/api/services/responder.js'
import { recordingLogger } from '../../kernel/runtime/support.js'
import { until } from './support.js'

/** In the thread: no network at first, looks at it when it is told to, and one that appears and cannot be asked about again. */
const FAKE = `
import os from 'node:os'
import { syncBuiltinESMExports } from 'node:module'
import { BroadcastChannel } from 'node:worker_threads'
let answers = []
os.networkInterfaces = () => (answers.shift() ?? (() => ({})))()
syncBuiltinESMExports()
let look
globalThis.setInterval = step => { look = step }
const orders = new BroadcastChannel('responder-test-' + process.pid)
orders.onmessage = () => {
  answers = [() => ({ eth0: [{ family: 'IPv4', internal: false, address: '192.0.2.1' }] }), () => { throw new Error('no list of networks') }]
  look()
}
orders.unref()
`

t.test('an announcement that fails after the network changed is told, and the same thread takes the next one', async t => {
  const { Worker } = workerThreads
  let threads = 0
  Object.assign(workerThreads, {
    Worker: class extends Worker {
      constructor (file: string | URL, options: workerThreads.WorkerOptions) {
        threads++
        super(file, { ...options, execArgv: ['--import', `data:text/javascript,${encodeURIComponent(FAKE)}`] })
      }
    }
  })
  syncBuiltinESMExports()
  const log = recordingLogger()
  const responder = new Responder(log, () => ({ hostname: 'box', interfaces: null }))
  const orders = new BroadcastChannel(`responder-test-${process.pid}`)
  t.teardown(async () => {
    orders.close()
    await responder.withdraw()
    Object.assign(workerThreads, { Worker })
    syncBuiltinESMExports()
  })
  const services = [{ id: 'notes', title: 'Notes on box', name: 'Notes', port: 4999 }]
  t.equal(await responder.announce(services), null)
  t.strictSame(responder.advertised, ['notes'])
  orders.postMessage('another network')
  await until(() => log.lines.length > 0, 'the failure is told')
  t.match(log.lines, [/network changed/])
  t.strictSame(responder.advertised, [], 'so that whoever looks announces them again')
  t.equal(await responder.announce(services), null)
  t.strictSame(responder.advertised, ['notes'])
  t.equal(threads, 1)
})
