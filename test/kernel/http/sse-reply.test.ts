import t from 'tap'
import { sse, svcError, type Logger, type SseEvent } from '../../../kernel/contract/index.js'
import { OpenStreams, sendSse } from '../../../kernel/http/stream/sse-reply.js'
import { FakeClock, settle } from '../../../kernel/testing/index.js'
import { FakeResponse } from '../dispatch/fake-response.js'

interface Stream {
  readonly res: FakeResponse
  readonly clock: FakeClock
  readonly streams: OpenStreams
  readonly errors: unknown[]
  readonly sent: Promise<void>
  /** The source's `finally` has run. */
  ended: boolean
}

function streamOf (events: (signal: AbortSignal) => AsyncIterable<SseEvent>, res = new FakeResponse()): Stream {
  const clock = new FakeClock()
  const streams = new OpenStreams()
  const errors: unknown[] = []
  const log = { error: (fields: { err: unknown }) => { errors.push(fields.err) } } as unknown as Logger
  const state = { ended: false }
  const source = async function* (signal: AbortSignal): AsyncGenerator<SseEvent> {
    try {
      yield* events(signal)
    } finally {
      state.ended = true
    }
  }
  const sent = sendSse(res.raw, sse(source), 'r', { clock, streams, log })
  return Object.assign(state, { res, clock, streams, errors, sent })
}

const untilAborted = (signal: AbortSignal): Promise<void> => new Promise(resolve => { signal.addEventListener('abort', () => resolve()) })

t.test('one event at a time, and an orderly end', async t => {
  const { res, sent, clock, streams } = streamOf(async function* () {
    yield { data: { a: 1 } }
    yield { event: 'state', id: 7, data: 'two\nlines' }
    yield { event: 'bad\nname', data: undefined }
  })
  await sent
  t.equal(res.text, 'data: {"a":1}\n\nevent: state\nid: 7\ndata: "two\\nlines"\n\nevent: bad name\ndata: null\n\n')
  t.ok(res.ended)
  t.equal(clock.pending + streams.size, 0, 'nothing is left')
})

t.test('comments while there is nothing to say', async t => {
  const { res, sent, clock, streams } = streamOf(async function* (signal) {
    yield { data: 1 }
    await untilAborted(signal)
  })
  await clock.advance(45_000)
  t.equal(res.text, `data: 1\n\n${': keep-alive\n\n'.repeat(3)}`)
  streams.closeAll()
  await sent
  t.ok(res.ended, 'a stopping gateway ends it')
  t.equal(clock.pending, 0)
})

t.test('the client leaves: the source\'s finally runs, nothing is written any more', async t => {
  for (const hasSocket of [true, false]) {
    const it = streamOf(async function* (signal) {
      yield { data: 1 }
      await untilAborted(signal)
      yield { data: 'late' }
    }, new FakeResponse(true, hasSocket))
    await settle()
    it.res.leave()
    await it.sent
    t.ok(it.ended)
    t.equal(it.res.text, 'data: 1\n\n')
    t.equal(it.clock.pending + it.streams.size + it.res.listenerCount('close') + it.res.req.socket.listenerCount('close'), 0)
  }
})

t.test('a client that left before: the source is never begun', async t => {
  const res = new FakeResponse()
  res.leave()
  let begun = false
  const it = streamOf(async function* () {
    begun = true
    yield { data: 1 }
  }, res)
  await it.sent
  t.notOk(begun)
  t.equal(it.streams.size, 0)
})

t.test('a client that does not read is not written to, and is let go when it leaves', async t => {
  let made = 0
  const it = streamOf(async function* () {
    for (;;) yield { data: ++made }
  }, new FakeResponse(false))
  await settle()
  t.equal(made, 1, 'the next is not even asked for')
  await it.clock.advance(60_000)
  t.equal(it.res.text, 'data: 1\n\n', 'no comments either')
  it.res.drain()
  await settle()
  t.equal(made, 2)
  it.res.leave()
  await it.sent
  t.ok(it.ended)
  t.equal(it.clock.pending, 0)
})

t.test('a source that fails is told as an event, and in the log when nobody expected it', async t => {
  const known = streamOf(async function* () {
    yield { data: 1 }
    throw svcError('slot.not_found', 'gone')
  })
  await known.sent
  t.match(known.res.text, /\n\nevent: error\ndata: \{"error":\{"code":"slot\.not_found".*\}\n\n$/)
  t.strictSame(known.errors, [])
  const unknown = streamOf(async function* () {
    yield { data: 1 }
    throw new Error('secret')
  })
  await unknown.sent
  t.match(unknown.res.text, /system\.internal/)
  t.notMatch(unknown.res.text, /secret/)
  t.match(unknown.errors, [{ message: 'secret' }])
  t.ok(unknown.res.ended)
  const atOnce = streamOf(() => { throw new Error('secret') })
  await atOnce.sent
  t.match(atOnce.res.text, /system\.internal/)
})
