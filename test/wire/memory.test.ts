import type { IncomingMessage, ServerResponse } from 'node:http'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { chatAnswer, chatStream } from '../../kernel/testing/index.js'
import { readUntil, until, wireGateway } from './wire-gateway.js'

setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc') as () => void

const words = chatStream(Array.from({ length: 20 }, (_, i) => ` word${i}`))
const ROUND = 300
/**
 * What one request may leave behind, in bytes, on average. The warm-up of the process takes some hundreds at first; a request
 * that is kept takes thousands.
 */
const ALLOWED = 1_000

/** Used heap once everything that can go has gone. */
async function heap (): Promise<number> {
  let least = Infinity
  for (let i = 0; i < 5; i++) {
    await new Promise(resolve => { setTimeout(resolve, 10) })
    gc()
    least = Math.min(least, process.memoryUsage().heapUsed)
  }
  return least
}

/** An engine that keeps nothing of what it was asked: half a stream when the client is about to leave. */
function serve (request: IncomingMessage, response: ServerResponse): void {
  let body = ''
  request.on('data', chunk => { body += String(chunk) }).on('end', () => {
    const streams = body.includes('"stream":true')
    response.writeHead(200, { 'content-type': streams ? 'text/event-stream' : 'application/json' })
    if (body.includes('"leaves"')) response.write(words[0])
    else response.end(streams ? words.join('') : chatAnswer('hello'))
  })
}

t.test('requests leave nothing behind, whether they are answered, refused or left', { timeout: 300_000 }, async t => {
  const none = (): void => {}
  // that of other tests keeps every line
  const gateway = await wireGateway(t, { log: { debug: none, info: none, warn: none, error: none } })
  await gateway.slots.load('agent')
  gateway.runtime.engine('agent').take(serve)
  const { dispatcher } = gateway.gateway.inference()
  const one = async (n: number): Promise<void> => {
    const seed = { seed: n }
    switch (n % 5) {
      case 0: return void await (await gateway.chat(seed)).text()
      case 1: return void await (await gateway.chat({ ...seed, stream: true })).text()
      case 2: return void await (await gateway.chat({ ...seed, model: `nobody-${n}` })).text()
      case 3: return void await readUntil(await gateway.chat({ ...seed, stream: true, user: 'leaves' }), text => text.length > 0)
      default: return void await (await gateway.fetch('/v1/chat/completions', { method: 'POST', body: `{"model": ${n}` })).text()
    }
  }
  let asked = 0
  const round = async (): Promise<number> => {
    const end = asked + ROUND
    await Promise.all(Array.from({ length: 8 }, async () => { while (asked < end) await one(asked++) }))
    await until(() => dispatcher.active.size === 0, 'all are over')
    return await heap()
  }
  await round()
  const [before, from] = [await round(), asked]
  let growth = Infinity
  for (let i = 0; i < 6 && (i < 2 || growth > ALLOWED); i++) growth = (await round() - before) / (asked - from)
  t.comment(`${growth.toFixed(0)} bytes a request`)
  t.ok(growth <= ALLOWED, `${growth.toFixed(0)} bytes a request stay`)
})
