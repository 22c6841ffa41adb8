import fc from 'fast-check'
import t from 'tap'
import { deflateSync } from 'node:zlib'
import { piecesWithoutMetadata, withoutMetadata } from '../../../../plugins/providers/imagegen/png-metadata.js'
import { chunk, decodePng, encodePng } from './fake/png.js'

const picture = { width: 3, height: 2, rgb: Buffer.from(Array.from({ length: 18 }, (_, i) => i)) }
const plain = encodePng(picture)
const [signature, header, rest] = [plain.subarray(0, 8), plain.subarray(8, 33), plain.subarray(33)]
const end = plain.subarray(plain.length - 12)

const texts: Readonly<Record<string, Buffer>> = {
  tEXt: Buffer.from('prompt\0{"3": {"inputs": {"text": "a secret"}}}', 'latin1'),
  zTXt: Buffer.concat([Buffer.from('workflow\0\0'), deflateSync('a secret')]),
  iTXt: Buffer.from('prompt\0\0\0en\0\0ein Geheimnis'),
  eXIf: Buffer.from('II*\0a secret')
}

t.test('texts go, every other byte stays, wherever they stand', async t => {
  for (const [type, body] of Object.entries(texts)) {
    const text = chunk(type, body)
    t.strictSame(withoutMetadata(Buffer.concat([signature, header, text, rest])), plain, `${type} before the picture`)
    t.strictSame(withoutMetadata(Buffer.concat([signature, header, rest.subarray(0, -12), text, end])), plain, `${type} behind it`)
  }
  const all = Object.entries(texts).map(([type, body]) => chunk(type, body))
  t.strictSame(withoutMetadata(Buffer.concat([signature, header, ...all, rest])), plain, 'several in a row')
  t.strictSame(decodePng(withoutMetadata(encodePng(picture, { prompt: 'x', workflow: 'y' }))), picture)
  const colours = chunk('gAMA', Buffer.from([0, 0, 177, 143]))
  const coloured = Buffer.concat([signature, header, colours, rest])
  t.strictSame(withoutMetadata(Buffer.concat([signature, header, colours, all[0]!, rest])), coloured, 'what a viewer needs is no text')
})

t.test('nothing is copied until it has to be', async t => {
  t.equal(withoutMetadata(plain), plain)
  const long = Buffer.concat([signature, header, chunk('tEXt', texts.tEXt!), rest])
  for (const piece of piecesWithoutMetadata(long)) t.equal(piece.buffer, long.buffer)
})

t.test('what is no whole PNG stays as it is', async t => {
  for (const bytes of [Buffer.alloc(0), Buffer.from('GIF89a tEXt'), signature, plain.subarray(0, 40)]) t.strictSame(withoutMetadata(bytes), bytes)
  const text = chunk('tEXt', texts.tEXt!)
  const torn = Buffer.concat([signature, header, text.subarray(0, -3)])
  t.strictSame(withoutMetadata(torn), torn, 'a text that breaks off')
  const tail = Buffer.concat([plain, Buffer.from('more')])
  t.strictSame(withoutMetadata(tail), tail)
  fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), bytes => {
    const png = Buffer.concat([signature, bytes])
    if (withoutMetadata(png).length > png.length) throw new Error('it grew')
  }))
})
