import t from 'tap'
import { pictureHead } from '../../../../plugins/v1/images/picture-head.js'
import { chunk, encodePng } from '../../providers/imagegen/fake/png.js'

const frame = (width: number, height: number): Buffer => {
  const body = Buffer.from([0xff, 0xc2, 0, 11, 8, 0, 0, 0, 0, 1, 1, 0x11, 0])
  body.writeUInt16BE(height, 5)
  body.writeUInt16BE(width, 7)
  return body
}
const segment = (marker: number, body: Buffer): Buffer => {
  const head = Buffer.from([0xff, marker, 0, 0])
  head.writeUInt16BE(body.length + 2, 2)
  return Buffer.concat([head, body])
}
const exif = (orientation: number, isLittle: boolean): Buffer => {
  const tiff = Buffer.alloc(8 + 2 + 12)
  const u16 = (value: number, at: number): number => isLittle ? tiff.writeUInt16LE(value, at) : tiff.writeUInt16BE(value, at)
  tiff.write(isLittle ? 'II' : 'MM', 'latin1')
  u16(42, 2)
  if (isLittle) tiff.writeUInt32LE(8, 4)
  else tiff.writeUInt32BE(8, 4)
  u16(1, 8)
  u16(0x0112, 10)
  u16(3, 12)
  u16(orientation, 18)
  return segment(0xe1, Buffer.concat([Buffer.from('Exif\0\0'), tiff]))
}
const jpeg = (...parts: readonly Buffer[]): Buffer => Buffer.concat([Buffer.from([0xff, 0xd8]), ...parts])
const webp = (kind: string, body: Buffer): Buffer => {
  const head = Buffer.from('RIFF\0\0\0\0WEBP    \0\0\0\0', 'latin1')
  head.write(kind, 12, 'latin1')
  return Buffer.concat([head, body])
}

t.test('the head of a picture says its format, its size as it is shown, and whether it can be transparent', async t => {
  const picture = { width: 30, height: 20, rgb: Buffer.alloc(1800) }
  const opaque = encodePng(picture)
  const palette = Buffer.concat([opaque.subarray(0, 33), chunk('tRNS', Buffer.from([0])), opaque.subarray(33)])
  const size = Buffer.alloc(10)
  size.writeUIntLE(299, 4, 3)
  size.writeUIntLE(199, 7, 3)
  size[0] = 0x10
  const cases: ReadonlyArray<readonly [string, Buffer, string, number, number, boolean]> = [
    ['a PNG', opaque, 'png', 30, 20, false],
    ['with alpha', encodePng({ ...picture, alpha: Buffer.alloc(600) }), 'png', 30, 20, true],
    ['with one transparent colour', palette, 'png', 30, 20, true],
    ['a JPEG', jpeg(segment(0xe0, Buffer.from('JFIF')), frame(400, 300)), 'jpeg', 400, 300, false],
    ['behind filling', jpeg(Buffer.from([0xff, 0xff, 0xff]).subarray(0, 2), frame(400, 300)), 'jpeg', 400, 300, false],
    ['a photo that stands', jpeg(exif(1, true), frame(400, 300)), 'jpeg', 400, 300, false],
    ['one that lies on its side', jpeg(exif(6, true), frame(400, 300)), 'jpeg', 300, 400, false],
    ['of another byte order', jpeg(exif(8, false), frame(400, 300)), 'jpeg', 300, 400, false],
    ['a WebP', webp('VP8 ', Buffer.from([0, 0, 0, 0x9d, 0x01, 0x2a, 0x90, 0x01, 0x2c, 0x01])), 'webp', 400, 300, false],
    ['without loss', webp('VP8L', Buffer.from([0x2f, 0x8f, 0xc1, 0x4a, 0x10])), 'webp', 400, 300, true],
    ['with more to it', webp('VP8X', size), 'webp', 300, 200, true]
  ]
  for (const [what, bytes, format, width, height, alpha] of cases) {
    t.strictSame(pictureHead(bytes), { format, width, height, alpha, moves: false }, what)
  }
  const frames = chunk('acTL', Buffer.from([0, 0, 0x10, 0, 0, 0, 0, 0]))
  const moving = [Buffer.concat([opaque.subarray(0, 33), frames, opaque.subarray(33)]), webp('VP8X', Buffer.from([2, ...size.subarray(1)]))]
  for (const bytes of moving) t.match(pictureHead(bytes), { moves: true, alpha: false }, 'one of many pictures')
})

t.test('what is cut off or no picture has no head, wherever it ends', async t => {
  const whole = jpeg(exif(6, true), frame(400, 300))
  const png = encodePng({ width: 3, height: 2, rgb: Buffer.alloc(18) })
  for (let end = 0; end < whole.length - 4; end++) t.equal(pictureHead(whole.subarray(0, end)), null)
  for (let end = 0; end < 26; end++) t.equal(pictureHead(png.subarray(0, end)), null)
  const others = [jpeg(Buffer.from([0xff, 0xda, 0, 4, 0, 0])), jpeg(segment(0xe1, Buffer.alloc(0)))]
  for (const bytes of [Buffer.from('GIF89a'), webp('VP9 ', Buffer.alloc(20)), webp('VP8X', Buffer.alloc(3)), ...others]) {
    t.equal(pictureHead(bytes), null)
  }
})
