import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { PassThrough } from 'node:stream'
import t from 'tap'
import type { SvcError } from '../../../kernel/contract/index.js'
import { blockBeside, BodyBlocks, keepBody, readBegins, readEnds } from '../../../kernel/dispatch/body/body-blocks.js'
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

t.test('memory of a large body is used again when all who read it have sent it', async t => {
  const MIB = 1024 * 1024
  const blocks = new BodyBlocks(clock, 8 * MIB)
  const fill = (byte: number, bytes = 2 * MIB): Buffer => blocks.lend(bytes)!.fill(byte)
  const first = fill(1)
  readBegins(first)
  const copy = blockBeside(first, MIB)!
  readBegins(copy)
  readEnds(copy, true)
  readEnds(first, true)
  blocks.giveBack(first)
  t.equal(blocks.freeBytes, 3 * MIB)
  t.equal(first.length + copy.length, 0, 'who kept it sees nothing of the next body')
  t.equal(blockBeside(first, MIB), null, 'nor gets memory beside it')
  const second = blocks.lend(2 * MIB - 5)!
  t.equal(second[0], 1, 'the same memory')
  t.equal(blocks.freeBytes, MIB)
  blocks.giveBack(second)
  t.equal(second.length, 2 * MIB - 5, 'nobody has said that it was sent')
  for (const end of [(body: Buffer) => readEnds(body, false), () => {}, keepBody]) {
    const body = fill(2)
    readBegins(body)
    readEnds(body, true)
    readBegins(body)
    end(body)
    if (end === keepBody) readEnds(body, true)
    blocks.giveBack(body)
    t.equal(body.length, 2 * MIB, 'one that was given up, is read, or was kept by a plugin is not used again')
  }
  const unseen = fill(3)
  blocks.giveBack(unseen, true)
  t.equal(unseen.length, 0, 'one that never came whole is')
  t.equal(blocks.lend(9 * MIB), null, 'the memory is bounded')
  const lent = [fill(4, 4 * MIB), fill(5, 4 * MIB)]
  t.equal(blocks.freeBytes, 0, 'free blocks make room')
  t.equal(blocks.lend(MIB), null)
  for (const body of lent) blocks.giveBack(body, true)
  t.equal(blocks.freeBytes, 8 * MIB)
  await clock.advance(10_000)
  t.equal(blocks.freeBytes, 0, 'and are let go when no large body comes any more')
  t.equal(blockBeside(Buffer.alloc(1), 1), null, 'of other memory nothing is known')
})
