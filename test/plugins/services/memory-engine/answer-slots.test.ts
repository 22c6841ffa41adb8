import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import t from 'tap'
import { wireGateway } from '../../../wire/wire-gateway.js'
import { memoryPlugins } from '../memory/host.js'
import type { EngineAnswer } from '../../../../plugins/services/memory/ref.js'
import { bytesOf, openEngine, type Wire } from './support.js'

const WORDS = 'lies in the old harbour, beside the pier where they mend nets and tell of storms'

/** Of one connection: 64 KB of answer each. */
const DEAF_QUESTIONS = 60

const ships = { items: Array.from({ length: 120 }, (_, i) => ({ content: `Ship${i} ${WORDS} ${i}.` })) }

/** A bank whose recalls are answered with more than a small answer has, and less than the largest. */
async function harbour (t: Parameters<typeof openEngine>[0]): Promise<Wire> {
  const wire = openEngine(t)
  await wire.call('POST', 'b/memories', ships)
  return wire
}

function recall ({ engine }: Wire, ship: number, lends = true, signal = new AbortController().signal): Promise<EngineAnswer> {
  const body = Buffer.from(JSON.stringify({ query: `Ship${ship} harbour pier`, budget: 'high' }))
  return engine.request({
    method: 'POST', path: '/v1/default/banks/b/memories/recall', query: '', headers: { 'content-type': 'application/json' }, body, signal, lends
  })
}

t.test('an answer that is lent lies in memory that the next one gets when it is let go, and says what any other says', async t => {
  const wire = await harbour(t)
  const own = await recall(wire, 1, false)
  t.equal(own.letGo, undefined)
  const expected = (await bytesOf(own)).toString()
  t.ok(expected.length > 16 * 1024, `${expected.length} characters`)
  const first = await recall(wire, 1)
  const { buffer } = first.body as Buffer
  t.ok(buffer instanceof SharedArrayBuffer)
  t.equal((first.body as Buffer).toString(), expected)
  first.letGo!()
  const next = await recall(wire, 2)
  t.equal((next.body as Buffer).byteOffset, (first.body as Buffer).byteOffset)
  t.match(JSON.parse((next.body as Buffer).toString()), { results: [{ text: /^Ship2 / }] })
  next.letGo!()
})

t.test('answers that are not let go keep their bytes, and those behind them have memory of their own', async t => {
  const wire = await harbour(t)
  const answers = await Promise.all(Array.from({ length: 12 }, (_, i) => recall(wire, i)))
  t.equal(answers.filter(({ letGo }) => letGo !== undefined).length, 4)
  t.equal(new Set(answers.map(({ body }) => `${(body as Buffer).buffer instanceof SharedArrayBuffer} ${(body as Buffer).byteOffset}`)).size, 5)
  for (const [i, { body }] of answers.entries()) t.match(JSON.parse((body as Buffer).toString()), { results: [{ text: new RegExp(`^Ship${i} `) }] })
  for (const { letGo } of answers) letGo?.()
  t.equal((await Promise.all([0, 1, 2, 3].map(i => recall(wire, i)))).filter(({ letGo }) => letGo !== undefined).length, 4)
})

t.test('an answer whose client leaves while it is made gives back the memory that it lies in', async t => {
  const wire = await harbour(t)
  for (let i = 0; i < 20; i++) {
    const leaving = new AbortController()
    const answer = recall(wire, i, true, leaving.signal)
    for (let turn = 0; turn < i; turn++) await new Promise(resolve => { setImmediate(resolve) })
    leaving.abort(new Error('left'))
    await answer.then(({ letGo }) => letGo?.(), () => {})
  }
  // what the thread has sent before it is there before it
  await wire.call('GET', 'b/config')
  const answers = await Promise.all([0, 1, 2, 3].map(i => recall(wire, i)))
  t.equal(answers.filter(({ letGo }) => letGo !== undefined).length, 4)
})

t.test('clients that ask at once, some of which read nothing and leave, are each answered with their own', async t => {
  const gateway = await wireGateway(t, { plugins: memoryPlugins, svc: '[memory]\nenabled = true\n' })
  const bank = '/api/memory/hindsight/v1/default/banks/b'
  const asked = (ship: number): string => JSON.stringify({ query: `Ship${ship} harbour pier`, budget: 'high' })
  const sent = (path: string, body: string): Promise<Response> =>
    gateway.fetch(`${bank}${path}`, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  t.equal((await sent('/memories', JSON.stringify(ships))).status, 200)
  const { host, hostname, port } = new URL(gateway.baseUrl)
  const body = asked(5)
  const one = `POST ${bank}/memories/recall HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
  /** Asks for more than fits between the two, and reads nothing. */
  const deaf = async (): Promise<Socket> => {
    const socket = connect(Number(port), hostname).pause()
    await once(socket, 'connect')
    socket.write(one.repeat(DEAF_QUESTIONS))
    return socket
  }
  const others = async (): Promise<void> => {
    const answers = await Promise.all([10, 11, 12, 13, 14, 15].map(async ship => {
      const response = await sent('/memories/recall', asked(ship))
      return (await response.json() as { results: ReadonlyArray<{ text: string }> }).results[0]!.text.split(' ')[0]
    }))
    t.same(answers, ['Ship10', 'Ship11', 'Ship12', 'Ship13', 'Ship14', 'Ship15'])
  }
  const leaving = await Promise.all([1, 2, 3, 4].map(deaf))
  await others()
  await Promise.all(leaving.map(socket => once(socket.resetAndDestroy(), 'close')))
  const slow = await Promise.all([1, 2, 3, 4].map(deaf))
  await others()
  for (const socket of slow) {
    let text = ''
    socket.setEncoding('utf8').on('data', (piece: string) => { text += piece }).resume()
    while (text.split('],"trace":').length <= DEAF_QUESTIONS) await once(socket, 'data')
    const told = text.split('HTTP/1.1 ').slice(1).map(each => JSON.parse(each.slice(each.indexOf('\r\n\r\n'))) as { results: ReadonlyArray<{ text: string }> })
    t.equal(told.length, DEAF_QUESTIONS)
    t.ok(told.every(({ results }) => results[0]!.text.startsWith('Ship5 ') && results.length === told[0]!.results.length))
    socket.destroy()
  }
})
