import type { IncomingMessage } from 'node:http'
import { PassThrough } from 'node:stream'
import t from 'tap'
import type { SvcError } from '../../../kernel/contract/index.js'
import { readWhole } from '../../../kernel/http/whole-body.js'

interface Read { readonly stream: PassThrough, readonly outcome: Promise<{ error: SvcError | null, body: string } | 'left'> }

function read (limit: number, headers: Record<string, string> = {}): Read {
  const stream = new PassThrough()
  const outcome = new Promise<{ error: SvcError | null, body: string } | 'left'>(resolve => {
    readWhole(Object.assign(stream, { headers }) as unknown as IncomingMessage, limit,
      (error, body) => resolve({ error, body: body.toString() }), () => resolve('left'))
  })
  return { stream, outcome }
}

function listeners (stream: PassThrough): number {
  return ['data', 'close'].reduce((sum, name) => sum + stream.listenerCount(name), 0)
}

t.test('a body in one piece, in many, and none', async t => {
  for (const pieces of [['abc'], ['a', 'b', 'c'], []]) {
    const { stream, outcome } = read(3)
    for (const piece of pieces) stream.write(piece)
    stream.end()
    t.strictSame(await outcome, { error: null, body: pieces.join('') })
    t.equal(listeners(stream), 0, 'nothing listens any more')
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
  t.equal(await outcome, 'left')
})
