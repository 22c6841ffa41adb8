import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { test } from 'tap'
import { svcError, translated, type AdaptedAnswer, type ChunkTranslator, type SvcError } from '../../../kernel/contract/index.js'
import type { AnswerSink } from '../../../kernel/dispatch/answer/answer-sink.js'
import { runProduced } from '../../../kernel/dispatch/answer/produced-answer.js'
import { ClientSink } from '../../../kernel/dispatch/answer/client-sink.js'
import { CallSink } from '../../../kernel/dispatch/call/call-sink.js'

const SSE = ['content-type', 'text/event-stream']
const broken = svcError('dispatch.upstream_failed', 'the engine is gone')

/** A reader that says what it got, and pauses when it is told to. */
class Reader implements AnswerSink {
  readonly got: string[] = []
  isSlow = false
  resume = (): void => {}
  head (status: number): void { this.got.push(String(status)) }
  data (chunk: Buffer): boolean {
    this.got.push(chunk.toString())
    return !this.isSlow
  }

  end (): void { this.got.push('END') }
  flush (): void { this.got.push('FLUSH') }
  fail (error: SvcError): void { this.got.push(`FAILED ${error.message}`) }
  onDrain (resume: () => void): void { this.resume = resume }
}

const loud = (more: Partial<ChunkTranslator> = {}): ChunkTranslator => ({
  chunk: bytes => bytes.length === 0 ? null : Buffer.from(bytes.toString().toUpperCase()),
  end: () => Buffer.from('.'),
  failed: () => ({ last: Buffer.from('!'), isTold: false }),
  ...more
})

interface Play {
  readonly call: CallSink
  readonly reader: Reader
  readonly settled: Promise<void>
  readonly giveUp: (reason: Error) => void
}

/** @param isPulled reads by iteration, as a caller does that knows nothing of givers */
async function play (isPulled: boolean, translator = loud()): Promise<Play> {
  const reader = new Reader()
  let call!: CallSink
  let settle = (): void => {}
  const settled = new Promise<void>(resolve => { settle = resolve })
  const giveUp = runProduced(async (signal): Promise<AdaptedAnswer> => {
    call = new CallSink(signal)
    call.watch()
    const { body } = await call.answer
    const iterated = { [Symbol.asyncIterator]: () => body[Symbol.asyncIterator]() }
    return { status: 200, headers: {}, body: translated(isPulled ? iterated : body, translator) }
  }, reader, error => error as SvcError, settle)
  await turn()
  call.head(200, SSE)
  return { call, reader, settled, giveUp }
}

test('the end of an answer that is handed on leaves in the turn of its last chunk', async t => {
  const { call, reader, settled } = await play(false)
  await turn()
  call.data(Buffer.from('a'))
  call.end()
  t.same(reader.got, ['200', 'A', '.', 'END'])
  await settled
})

test('work that fails gives up what it has begun', async t => {
  const reader = new Reader()
  let begun: AbortSignal | null = null
  await new Promise<void>(resolve => {
    runProduced(signal => {
      begun = signal
      return Promise.reject(broken)
    }, reader, error => error as SvcError, resolve)
  })
  t.same(reader.got, ['FAILED the engine is gone'])
  t.equal(begun!.aborted, true)
})

test('what is translated early leaves before the rest of its chunk is translated', async t => {
  const { call, reader } = await play(false, loud({
    chunk: (bytes, early) => {
      early(bytes.subarray(0, 1))
      reader.got.push('the rest')
      return bytes.subarray(1)
    }
  }))
  await turn()
  call.data(Buffer.from('ab'))
  t.same(reader.got, ['200', 'a', 'FLUSH', 'the rest', 'b'])
})

for (const isPulled of [true, false]) {
  const how = isPulled ? 'by iteration' : 'as it comes'
  test(`an answer that is translated ${how} arrives in its order, with what came before its reader was there`, async t => {
    const { call, reader, settled } = await play(isPulled)
    call.data(Buffer.from('a'))
    call.data(Buffer.from('b'))
    await turn()
    call.data(Buffer.from(''))
    call.data(Buffer.from('c'))
    await turn()
    call.end()
    await settled
    t.same(reader.got, ['200', 'A', 'B', 'C', '.', 'END'])
  })

  test(`a reader that pauses gets no chunk of an answer translated ${how} until it takes more, and its end after them`, async t => {
    const { call, reader, settled } = await play(isPulled)
    await turn()
    reader.isSlow = true
    call.data(Buffer.from('a'))
    await turn()
    call.data(Buffer.from('b'))
    call.end()
    await turn()
    t.same(reader.got, ['200', 'A'])
    reader.isSlow = false
    reader.resume()
    await settled
    t.same(reader.got, ['200', 'A', 'B', '.', 'END'])
  })

  test(`what is translated early of a chunk ${how} comes before the rest, also where that cannot be translated, and asks to pause as any`, async t => {
    const early = loud({
      chunk: (bytes, early) => {
        early(bytes.subarray(0, 1))
        if (bytes.length === 1) throw broken
        return bytes.length === 2 ? null : bytes.subarray(2)
      }
    })
    const { call, reader, settled } = await play(isPulled, early)
    const got = (): readonly string[] => reader.got.filter(text => text !== 'FLUSH')
    await turn()
    call.data(Buffer.from('abc'))
    await turn()
    reader.isSlow = true
    call.data(Buffer.from('de'))
    await turn()
    call.data(Buffer.from('f'))
    await turn()
    t.same(got(), ['200', 'a', 'c', 'd'])
    reader.isSlow = false
    reader.resume()
    await settled
    t.same(got(), ['200', 'a', 'c', 'd', 'f', '!', 'FAILED the engine is gone'])
  })

  test(`an answer translated ${how} that breaks off tells it behind what came, in its own words or with the failure`, async t => {
    const told = await play(isPulled, loud({ failed: () => ({ last: Buffer.from('in words'), isTold: true }) }))
    const failed = await play(isPulled)
    for (const { call, settled } of [told, failed]) {
      call.data(Buffer.from('a'))
      call.fail(broken)
      await settled
    }
    t.same(told.reader.got, ['200', 'A', 'in words', 'END'])
    t.same(failed.reader.got, ['200', 'A', '!', 'FAILED the engine is gone'])
  })

  test(`a chunk that cannot be translated ${how} ends the answer and the work for it`, async t => {
    const { call, reader, settled } = await play(isPulled, loud({ chunk: () => { throw broken } }))
    let gone = 0
    call.onGone = () => { gone++ }
    await turn()
    call.data(Buffer.from('a'))
    await settled
    call.data(Buffer.from('b'))
    t.same(reader.got, ['200', '!', 'FAILED the engine is gone'])
    t.equal(gone, 1)
  })

  test(`an answer translated ${how} is given up with its reader, also in the middle of a pause`, async t => {
    const { call, reader, settled, giveUp } = await play(isPulled)
    let gone = 0
    call.onGone = () => { gone++ }
    await turn()
    reader.isSlow = true
    call.data(Buffer.from('a'))
    await turn()
    call.data(Buffer.from('b'))
    giveUp(new Error('the client left'))
    await settled
    t.same(reader.got.filter(text => text !== '!'), ['200', 'A'], 'it hears no more of it than of what it left')
    t.equal(gone, 1)
  })
}

test('an answer whose early piece is more than a socket takes at once ends, with all that comes behind', async t => {
  const early = Buffer.alloc(100 * 1024, 'e')
  const calls: CallSink[] = []
  const server = createServer((_, res) => {
    runProduced(async (signal): Promise<AdaptedAnswer> => {
      const call = new CallSink(signal)
      call.watch()
      calls.push(call)
      const { body } = await call.answer
      return {
        status: 200,
        headers: { 'content-type': 'text/event-stream' },
        body: translated(body, loud({
          chunk: (bytes, tell) => {
            if (bytes.toString() === 'a') tell(early)
            return bytes
          }
        }))
      }
    }, new ClientSink(res, 'r', () => {}), error => error as SvcError, () => {})
  }).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const answered = fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  await once(server, 'request')
  await turn()
  const call = calls[0]!
  call.head(200, SSE)
  await turn()
  for (const chunk of ['a', 'b', 'c']) call.data(Buffer.from(chunk))
  call.end()
  t.equal(await (await answered).text(), `${early}abc.`)
})

test('the engine is asked to pause as long as the reader of what is translated does', async t => {
  const { call, reader, settled } = await play(false)
  let resumed = 0
  call.onDrain(() => { resumed++ })
  await turn()
  reader.isSlow = true
  t.equal(call.data(Buffer.from('a')), false)
  reader.isSlow = false
  reader.resume()
  t.equal(resumed, 1)
  t.equal(call.data(Buffer.from('b')), true)
  call.end()
  await settled
})
