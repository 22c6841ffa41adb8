import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from '../../property.js'
import t, { type Test } from 'tap'
import { svcError, type SvcError } from '../../../kernel/contract/index.js'
import type { AnswerSink } from '../../../kernel/dispatch/answer/answer-sink.js'
import { RefusalFilter } from '../../../kernel/dispatch/answer/refusal-filter.js'
import { HeldBlocks, HeldBytes } from '../../../kernel/dispatch/upload/held-bytes.js'
import { sweepSpool } from '../../../kernel/dispatch/upload/spool-file.js'
import { RangeSplice, UploadBody } from '../../../kernel/dispatch/upload/upload-body.js'
import { UploadBuffer } from '../../../kernel/dispatch/upload/upload-buffer.js'
import { UploadMemory } from '../../../kernel/dispatch/upload/upload-memory.js'
import { FakeClock } from '../../../kernel/testing/index.js'

const KIB = 1024
/** Bytes that tell their place, one by one modulo 251: more than any one push of the scripts. */
const COUNTED = Buffer.from(Uint8Array.from({ length: 512 * KIB }, (_, i) => i % 251))

t.test('a range is replaced and nothing else, however the body is cut', async () => {
  const sizes = fc.array(fc.integer({ min: 1, max: 15 }))
  const body = fc.uint8Array({ minLength: 1, maxLength: 60 })
  const cases = fc.tuple(body, fc.nat(60), fc.nat(20), fc.uint8Array({ maxLength: 10 }), sizes)
  fc.assert(fc.property(cases, ([bytes, at, length, bytesIn, sizes]) => {
    const body = Buffer.from(bytes)
    // the range of a field always has a boundary behind it
    const start = Math.min(at, body.length - 1)
    const end = Math.min(start + length, body.length - 1)
    const splice = new RangeSplice({ start, end, bytes: Buffer.from(bytesIn) })
    const out: Buffer[] = []
    for (let from = 0, i = 0; from < body.length; i++) {
      const size = sizes[i % Math.max(sizes.length, 1)] ?? 7
      out.push(...splice.push(body.subarray(from, from + size)))
      from += size
    }
    assert.deepEqual(Buffer.concat(out), Buffer.concat([body.subarray(0, start), Buffer.from(bytesIn), body.subarray(end)]))
  }), { numRuns: 3000 })
  const same = Buffer.from('as it is')
  assert.equal(new RangeSplice(null).push(same)[0], same)
})

interface Bench {
  readonly buffer: UploadBuffer
  readonly clock: FakeClock
  readonly folder: string
  readonly rooms: () => number
  readonly failures: readonly Error[]
}

function bench (t: Test, folder = join(t.testdir(), 'spool'), memory = new UploadMemory(0)): Bench {
  let rooms = 0
  const failures: Error[] = []
  const clock = new FakeClock()
  const buffer = new UploadBuffer({ clock, folder, memory, room: () => { rooms++ }, failed: error => failures.push(error) })
  t.teardown(() => buffer.close())
  return { buffer, clock, folder, rooms: () => rooms, failures }
}

async function readAll (buffer: UploadBuffer): Promise<Buffer> {
  const parts: Buffer[] = []
  for (let part = await buffer.read(); part !== null; part = await buffer.read()) parts.push(part)
  return Buffer.concat(parts)
}

t.test('a reader that keeps up sets the pace, and the disk is left alone', async t => {
  const { buffer, clock, folder, rooms } = bench(t)
  const chunk = randomBytes(64 * KIB)
  for (let i = 0; i < 3; i++) t.equal(buffer.push(chunk), true)
  t.equal(buffer.push(chunk), false, 'the window is full')
  await clock.advance(24)
  await buffer.read()
  t.equal(rooms(), 0)
  await buffer.read()
  t.equal(rooms(), 0, 'half is not yet room')
  await buffer.read()
  t.equal(rooms(), 1)
  t.equal(clock.pending, 0, 'no timer stays')
  buffer.push(chunk)
  buffer.end()
  t.equal((await readAll(buffer)).length, 128 * KIB)
  t.equal(buffer.spilledBytes, 0)
  await t.rejects(readdir(folder), 'no folder was made')
})

t.test('without a reader the rest goes through a file that has no name', async t => {
  const { buffer, clock, folder, rooms } = bench(t)
  const chunks = Array.from({ length: 100 }, () => randomBytes(64 * KIB))
  for (const chunk of chunks.slice(0, 4)) buffer.push(chunk)
  await clock.advance(25)
  t.equal(rooms(), 1, 'the sender may go on')
  let asked = rooms()
  for (const chunk of chunks.slice(4)) {
    if (buffer.push(chunk)) continue
    await until(() => rooms() > asked)
    asked = rooms()
  }
  buffer.end()
  t.same(await readdir(folder), [])
  t.ok((await readAll(buffer)).equals(Buffer.concat(chunks)))
  t.equal(buffer.spilledBytes, 96 * 64 * KIB)
})

t.test('what waits for a reader shares the memory that there is; then it goes to disk', async t => {
  const MIB = 1024 * KIB
  const memory = new UploadMemory(5 * MIB)
  const chunk = randomBytes(256 * KIB)
  const [one, two] = [bench(t, join(t.testdir(), 'one'), memory), bench(t, join(t.testdir(), 'two'), memory)]
  for (let i = 0; i < 12; i++) t.ok(one.buffer.push(chunk), 'no reader was there yet: there is nothing to wait for')
  t.equal(memory.taken, 3 * MIB)
  let pushed = 0
  while (two.buffer.push(chunk)) pushed++
  t.equal(pushed, 8, 'two of the five, and its own window')
  t.equal(memory.taken, 5 * MIB)
  await two.clock.advance(25)
  two.buffer.push(chunk)
  await until(() => two.buffer.spilledBytes === chunk.length)

  one.buffer.end()
  t.equal((await readAll(one.buffer)).length, 12 * chunk.length)
  t.equal(one.buffer.spilledBytes, 0)
  t.equal(memory.taken, 2 * MIB, 'the first has given back what it had')
  two.buffer.close()
  t.equal(memory.taken, 0, 'and so does one that is given up')

  const large = bench(t, join(t.testdir(), 'three'), new UploadMemory(100 * MIB))
  for (pushed = 0; large.buffer.push(chunk);) pushed++
  t.equal(pushed, 96, 'one upload may take 24 MiB')
})

/** The bytes of a body from a place on. */
function counted (place: number, length: number): Buffer {
  return COUNTED.subarray(place % 251, place % 251 + length)
}

t.test('any order of pushes, reads and stalls keeps the bytes in order', async t => {
  const steps = fc.array(fc.oneof(
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('push' as const), size: fc.integer({ min: 1, max: 200 * KIB }) }) },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('read' as const), size: fc.constant(0) }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('stall' as const), size: fc.constant(0) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('turn' as const), size: fc.constant(0) }) }
  ), { maxLength: 40 })
  const folder = join(t.testdir(), 'spool')
  await fc.assert(fc.asyncProperty(steps, fc.constantFrom(0, 1, 3, 64), async (steps, megabytes) => {
    const memory = new UploadMemory(megabytes * 1024 * KIB)
    const { buffer, clock } = bench(t, folder, memory)
    let sent = 0
    let received = 0
    const check = (part: Buffer): void => {
      // compared whole, and in pieces no longer than what was counted
      for (let at = 0; at < part.length;) {
        const piece = part.subarray(at, at + COUNTED.length - 251)
        const wanted = counted(received, piece.length)
        if (!piece.equals(wanted)) throw new Error(`byte ${received + piece.findIndex((byte, i) => byte !== wanted[i])} is out of order`)
        received += piece.length
        at += piece.length
      }
    }
    for (const { kind, size } of steps) {
      if (kind === 'push') {
        // its own memory, as that of a socket is
        buffer.push(Buffer.from(counted(sent, size)))
        sent += size
      } else if (kind === 'read' && received < sent) {
        check((await buffer.read())!)
      } else if (kind === 'stall') {
        await clock.advance(25)
      } else {
        await new Promise(resolve => { setImmediate(resolve) })
      }
    }
    buffer.end()
    check(await readAll(buffer))
    assert.equal(received, sent)
    assert.equal(memory.taken, 0, 'what was taken is given back')
    buffer.close()
    assert.equal(memory.taken, 0)
  }), { numRuns: 150 })
})

t.test('a stalled reader that comes back takes over again', async t => {
  const { buffer, clock } = bench(t)
  const chunk = randomBytes(64 * KIB)
  for (let i = 0; i < 4; i++) buffer.push(chunk)
  await clock.advance(25)
  for (let i = 0; i < 4; i++) buffer.push(chunk)
  await until(() => buffer.spilledBytes === 256 * KIB)
  for (let read = 0; read < 512 * KIB;) read += (await buffer.read())!.length
  const waiting = buffer.read()
  buffer.push(chunk)
  t.equal((await waiting)!.length, chunk.length)
  t.equal(buffer.spilledBytes, 256 * KIB, 'this one went straight through')
})

t.test('a disk that fails ends the upload once, and frees the reader', async t => {
  const file = join(t.testdir({ spool: 'a file where the folder should be' }), 'spool')
  const { buffer, clock, failures } = bench(t, file)
  for (let i = 0; i < 4; i++) buffer.push(randomBytes(64 * KIB))
  await clock.advance(25)
  buffer.push(randomBytes(64 * KIB))
  await until(() => failures.length > 0)
  t.match(failures, [{ code: /EEXIST|ENOTDIR/ }])
  t.equal(buffer.push(Buffer.alloc(1)), true, 'what still comes is dropped')
  await t.rejects(readAll(buffer), { code: /EEXIST|ENOTDIR/ })
})

t.test('giving up frees the reader and the file, whatever is under way', async t => {
  const open = async (): Promise<number> => (await readdir('/proc/self/fd')).length
  const before = await open()
  const folder = join(t.testdir(), 'spool')
  for (let turns = 0; turns < 8; turns++) {
    const { buffer, clock } = bench(t, folder)
    for (let i = 0; i < 4; i++) buffer.push(randomBytes(64 * KIB))
    await clock.advance(25)
    buffer.push(randomBytes(64 * KIB))
    for (let i = 0; i < turns; i++) await new Promise(resolve => { setImmediate(resolve) })
    const body = new UploadBody(buffer, null)
    const closed = new Promise(resolve => { body.on('close', resolve) })
    body.resume()
    buffer.close()
    await closed
    t.ok(body.destroyed)
    t.equal(clock.pending, 0)
  }
  for (let now = await open(); now > before; now = await open()) await new Promise(resolve => { setImmediate(resolve) })
  t.pass('every file is closed')
})

t.test('what a killed gateway may leave is swept', async t => {
  const folder = join(t.testdir(), 'spool')
  await sweepSpool(folder)
  await mkdir(join(folder, 'a-folder-of-somebody'), { recursive: true })
  await writeFile(join(folder, 'left'), 'x')
  await sweepSpool(folder)
  t.same(await readdir(folder), ['a-folder-of-somebody'])
  await t.rejects(readFile(join(folder, 'left')))
})

t.test('refusals are judged as a whole, answers pass at once', async t => {
  const log: string[] = []
  const sink: AnswerSink = {
    head: status => { log.push(`head ${status}`) },
    data: chunk => { log.push(chunk.toString().slice(0, 10)); return true },
    end: () => { log.push('end') },
    fail: error => { log.push(error.code) },
    onDrain: () => {}
  }
  const judge = (status: number, body: string): SvcError | null =>
    body.includes('ffmpeg') ? svcError('request.unsupported_media_type', String(status)) : null
  const run = (
    status: number, chunks: readonly string[], last: 'end' | 'fail' = 'end', filter = new RefusalFilter(sink, judge), type = 'text/plain'
  ): readonly string[] => {
    log.length = 0
    filter.head(status, ['Content-Type', type])
    for (const chunk of chunks) filter.data(Buffer.from(chunk))
    if (last === 'end') filter.end()
    else filter.fail(svcError('dispatch.upstream_failed', 'x'))
    return [...log]
  }
  t.same(run(200, ['ffmpeg', 'b']), ['head 200', 'ffmpeg', 'b', 'end'])
  t.same(run(500, ['ff', 'mpeg']), ['request.unsupported_media_type'])
  t.same(run(500, ['a', 'b']), ['head 500', 'a', 'b', 'end'])
  t.same(run(500, ['a'], 'fail'), ['dispatch.upstream_failed'], 'half a refusal is no answer')
  t.same(run(500, ['ffmpeg', 'x'.repeat(70_000), 'b']), ['head 500', 'ffmpeg', 'xxxxxxxxxx', 'b', 'end'], 'too long to be judged')

  const guised = (...chunks: readonly string[]): readonly string[] => run(200, chunks, 'end', new RefusalFilter(sink, judge, 0))
  t.same(guised('ff', 'mpeg'), ['request.unsupported_media_type'], 'in the guise of success')
  t.same(guised('a', 'b'), ['head 200', 'a', 'b', 'end'])
  t.same(guised('x'.repeat(70_000), 'ffmpeg'), ['head 200', 'xxxxxxxxxx', 'ffmpeg', 'end'])
  t.same(run(200, ['ffmpeg'], 'end', new RefusalFilter(sink, judge, 0), 'text/event-stream'), ['head 200', 'ffmpeg', 'end'])
})

async function until (condition: () => boolean): Promise<void> {
  for (const end = performance.now() + 120_000; !condition();) {
    if (performance.now() > end) throw new Error('it did not come about')
    await new Promise(resolve => { setImmediate(resolve) })
  }
}

t.test('what waits in memory comes out in order, as copies, and its blocks are used again', t => {
  const MIB = 1024 * 1024
  const blocks = new HeldBlocks(4 * MIB)
  const [other, held] = [new HeldBytes(blocks), new HeldBytes(blocks)]
  other.push(Buffer.from('other'))
  const sent = Buffer.alloc(3 * MIB + 77)
  for (let i = 0; i < sent.length; i++) sent[i] = i * 31 % 251
  const seen: Buffer[] = []
  for (let at = 0; at < sent.length; at += 70_001) {
    held.push(sent.subarray(at, at + 70_001))
    if (at % 3 === 0) seen.push(held.shift(50_000)!)
  }
  for (let next = held.shift(300_000); next !== undefined; next = held.shift(300_000)) seen.push(next)
  t.ok(held.isEmpty)
  t.ok(blocks.freeBytes >= 2 * MIB)
  held.push(Buffer.alloc(3 * MIB))
  t.ok(Buffer.concat(seen).equals(sent), 'also when the blocks have other bytes by now')
  held.clear()
  t.equal(held.shift(1), undefined)
  t.equal(blocks.freeBytes, 3 * MIB, 'no more is kept than may wait')
  t.equal(other.shift(9)?.toString(), 'other')
  t.equal(blocks.freeBytes, 0, 'and nothing when no upload waits any more')
  t.end()
})
