import { Readable } from 'node:stream'
import fc from '../../../property.js'
import t from 'tap'
import { createDemultiplexer } from '../../../../kernel/runtime/docker/docker-logs.js'
import { jsonLines } from '../../../../kernel/runtime/docker/json-lines.js'

function frame (stream: number, text: string): Buffer {
  const payload = Buffer.from(text)
  const header = Buffer.alloc(8)
  header[0] = stream
  header.writeUInt32BE(payload.length, 4)
  return Buffer.concat([header, payload])
}

function demultiplex (bytes: Buffer, cuts: readonly number[]): string[] {
  const demultiplexer = createDemultiplexer()
  const lines: string[] = []
  let at = 0
  for (const cut of cuts) {
    lines.push(...demultiplexer.push(bytes.subarray(at, at + cut)))
    at += cut
  }
  return [...lines, ...demultiplexer.push(bytes.subarray(at)), ...demultiplexer.end()]
}

t.test('frames of two streams, cut anywhere', async t => {
  const bytes = Buffer.concat([
    frame(1, 'one\ntw'), frame(2, 'err ü'), frame(1, 'o\n'), frame(2, 'ber\n'), frame(1, ''), frame(1, '🚀'), frame(1, '\nlast')
  ])
  const expected = ['one', 'two', 'err über', '🚀', 'last']
  t.same(demultiplex(bytes, []), expected)
  const anyCuts = fc.array(fc.nat(12), { maxLength: 60 })
  fc.assert(fc.property(anyCuts, cuts => { t.same(demultiplex(bytes, cuts), expected) }), { numRuns: 100 })
})

t.test('a frame larger than any chunk is not collected', async t => {
  const demultiplexer = createDemultiplexer()
  const bytes = frame(1, 'x'.repeat(5_000_000) + '\n')
  let longest = 0
  let total = 0
  for (let at = 0; at < bytes.length; at += 65_536) {
    for (const line of demultiplexer.push(bytes.subarray(at, at + 65_536))) {
      longest = Math.max(longest, line.length)
      total += line.length
    }
  }
  t.equal(total, 5_000_000)
  t.ok(longest <= 16_384)
})

t.test('a container with a terminal sends bare text', async t => {
  const text = Buffer.from('plain line\nand another\r\nrest')
  for (const cuts of [[], [1, 1, 1], [9]]) t.same(demultiplex(text, cuts), ['plain line', 'and another', 'rest'])
})

t.test('JSON objects are read one per line, wherever the chunks are cut', async t => {
  const read = async (chunks: readonly (string | Buffer)[]): Promise<unknown[]> => {
    const all: unknown[] = []
    for await (const value of jsonLines(Readable.from(chunks))) all.push(value)
    return all
  }
  t.same(await read(['{"a":1}\n{"a"', ':2}\r\n', '\n', '{"a":3}']), [{ a: 1 }, { a: 2 }, { a: 3 }])
  const bytes = Buffer.from('{"a":"ü🚀"}\n')
  t.same(await read([...bytes].map(byte => Buffer.from([byte]))), [{ a: 'ü🚀' }])
  t.same(await read(['not json\n[1]\n"text"\nnull\n{"a":1}\n{"cut": ']), [[1], { a: 1 }], 'what is no object is passed over')
  await t.rejects(read(['x'.repeat(5_000_000)]), /endless line/)
})
