import t from 'tap'
import { BodyPieces } from '../../../kernel/dispatch/body/body-pieces.js'
import fc from '../../property.js'

const size = fc.oneof(fc.constantFrom(1, 2, 4095, 4096, 40_000, 65_535, 65_536, 70_000), fc.nat(300))
const sizes = fc.array(size, { maxLength: 120 })

t.test('a body is what its pieces were, whatever their sizes, in one and in memory that is given', async () => {
  fc.assert(fc.property(sizes, sizes => {
    const pieces = sizes.map((size, i) => Buffer.alloc(size, i % 251))
    const [body, again] = [new BodyPieces(), new BodyPieces()]
    for (const piece of pieces) for (const each of [body, again]) each.add(piece)
    const all = Buffer.concat(pieces)
    const block = Buffer.alloc(all.length)
    again.copyTo(block)
    for (const piece of pieces) again.add(piece)
    return body.joined().equals(all) && block.equals(all) && again.joined().equals(Buffer.concat([all, all]))
  }), { numRuns: 100 })
})

t.test('of a body in pieces of one byte few are kept, also where large ones come between', async t => {
  const calls = t.capture(Buffer, 'concat', Buffer.concat)
  for (const [every, most] of [[Infinity, 40], [40, 16 + 2 * 5_000]] as const) {
    const body = new BodyPieces()
    for (let i = 0; i < 200_000; i++) {
      body.add(Buffer.from([i % 251]))
      if (i % every === every - 1) body.add(Buffer.alloc(4096))
    }
    body.joined()
    const [kept] = calls().at(-1)!.args as unknown as readonly Buffer[][]
    t.ok(kept!.length <= most, `${kept!.length} pieces are kept`)
    // a piece keeps all of what it was cut from
    const held = [...new Set(kept!.map(({ buffer }) => buffer))].reduce((sum, { byteLength }) => sum + byteLength, 0)
    t.ok(held < 2 * kept!.reduce((sum, { length }) => sum + length, 0) + 256 * 1024, `${held} bytes`)
  }
})
