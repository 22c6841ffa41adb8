import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { PassThrough } from 'node:stream'
import t from 'tap'
import type { SvcError } from '../../../kernel/contract/index.js'
import { BodyReads } from '../../../kernel/http/body/body-reads.js'
import { FakeClock } from '../../../kernel/testing/index.js'

interface Read {
  readonly stream: PassThrough
  readonly outcome: Promise<{ error: SvcError | null, body: string | null }>
  readonly answers: () => number
}

const clock = new FakeClock()
const reads = new BodyReads({ clock, memoryBytes: 1024, idleMs: () => 1000 })
const KIB_64 = 64 * 1024

function read (limit: number, headers: Record<string, string> = {}): Read {
  const stream = new PassThrough()
  let answers = 0
  const outcome = new Promise<{ error: SvcError | null, body: string | null }>(resolve => {
    reads.read(Object.assign(stream, { headers, socket: stream }) as unknown as IncomingMessage, null, limit, (error, body) => {
      answers++
      resolve({ error, body: body?.toString() ?? null })
    })
  })
  return { stream, outcome, answers: () => answers }
}

function listeners (stream: PassThrough): number {
  return ['data', 'close'].reduce((sum, name) => sum + stream.listenerCount(name), 0)
}

t.test('a body in one piece, in many, and none', async t => {
  for (const pieces of [['abc'], ['a', 'b', 'c'], []]) {
    const { stream, outcome, answers } = read(3)
    const closed = once(stream, 'close')
    for (const piece of pieces) stream.write(piece)
    stream.end()
    t.strictSame(await outcome, { error: null, body: pieces.join('') })
    await closed
    t.equal(answers(), 1, 'the connection that ends behind it tells nothing more')
    t.equal(reads.open, 0)
  }
})

t.test('a body over the limit, announced and not', async t => {
  const announced = read(3, { 'content-length': '4' })
  t.match(await announced.outcome, { error: { code: 'request.too_large' } }, 'before a byte of it is read')
  const grown = read(3)
  grown.stream.write('ab')
  grown.stream.write('cd')
  t.match(await grown.outcome, { error: { code: 'request.too_large' } })
  t.equal(listeners(grown.stream), 0)
})

t.test('a client that leaves in the middle', async t => {
  const { stream, outcome } = read(3)
  stream.write('a')
  stream.destroy()
  t.strictSame(await outcome, { error: null, body: null })
})

t.test('small bodies do not count, of large ones one alone may be larger than the memory', async t => {
  const small = read(KIB_64)
  small.stream.write('x'.repeat(KIB_64))
  t.equal(reads.memory.taken, 0)
  const large = read(KIB_64 * 4)
  large.stream.write('x'.repeat(KIB_64 * 2))
  large.stream.write('x'.repeat(KIB_64))
  t.equal(reads.memory.taken, KIB_64 * 3)
  const second = read(KIB_64 * 4)
  second.stream.write('x'.repeat(KIB_64 + 1))
  t.match(await second.outcome, { error: { code: 'gateway.body_memory_full' } })
  t.equal(reads.memory.taken, KIB_64 * 3, 'the first is not touched by that')
  for (const { stream } of [large, small]) stream.end()
  t.equal((await large.outcome).body?.length, KIB_64 * 3)
  await small.outcome
  const closed = new Promise(resolve => { second.stream.once('close', resolve) })
  second.stream.destroy()
  await closed
  t.equal(reads.memory.taken, 0)
  t.equal(reads.open, 0)
})

t.test('one timer looks after all bodies, and none when there are none', async t => {
  const slow = [read(10), read(10), read(10)]
  t.equal(clock.pending, 1)
  slow[1]!.stream.end('done')
  t.equal((await slow[1]!.outcome).body, 'done')
  await clock.advance(1_500)
  t.match(await slow[0]!.outcome, { error: { code: 'request.body_stalled', status: 408 } })
  t.match(await slow[2]!.outcome, { error: { code: 'request.body_stalled' } })
  await clock.advance(1_000)
  t.equal(clock.pending, 0)
})
