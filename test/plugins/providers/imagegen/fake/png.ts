import { crc32 as zlibCrc32, deflateSync, inflateSync } from 'node:zlib'

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])

export interface Picture {
  readonly width: number
  readonly height: number
  /** Three bytes a pixel. */
  readonly rgb: Buffer
  /** A byte a pixel, 255 for what is opaque; without it everything is. */
  readonly alpha?: Buffer
}

/** A PNG of 8-bit RGB, with alpha if there is some. @param texts what stands in its text chunks, by keyword */
export function encodePng ({ width, height, rgb, alpha }: Picture, texts: Readonly<Record<string, string>> = {}): Buffer {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([8, alpha === undefined ? 2 : 6, 0, 0, 0], 8)
  const depth = alpha === undefined ? 3 : 4
  const rows = Buffer.alloc((width * depth + 1) * height)
  for (let y = 0; y < height; y++) {
    const row = y * (width * depth + 1) + 1
    if (alpha === undefined) rgb.copy(rows, row, y * width * 3, (y + 1) * width * 3)
    else {
      for (let x = 0; x < width; x++) {
        const at = y * width + x
        rows.set([...rgb.subarray(at * 3, at * 3 + 3), alpha[at]!], row + x * 4)
      }
    }
  }
  const words = Object.entries(texts).map(([keyword, text]) => chunk('tEXt', Buffer.from(`${keyword}\0${text}`, 'latin1')))
  return Buffer.concat([SIGNATURE, chunk('IHDR', header), ...words, chunk('IDAT', deflateSync(rows, { level: 1 })), chunk('IEND', Buffer.alloc(0))])
}

/** Reads what `encodePng` writes, checking signature, checksums and length as a viewer does. Throws what is wrong. */
export function decodePng (png: Buffer): Picture {
  if (!png.subarray(0, 8).equals(SIGNATURE)) throw new Error('no PNG signature')
  const data: Buffer[] = []
  let width = 0
  let height = 0
  let depth = 3
  for (let at = 8; at < png.length;) {
    const length = png.readUInt32BE(at)
    const type = png.toString('latin1', at + 4, at + 8)
    const body = png.subarray(at + 8, at + 8 + length)
    if (png.readUInt32BE(at + 8 + length) !== crc32(png.subarray(at + 4, at + 8 + length))) throw new Error(`bad checksum of ${type}`)
    if (type === 'IHDR') {
      width = body.readUInt32BE(0)
      height = body.readUInt32BE(4)
      depth = body[9] === 6 ? 4 : 3
      if (body.subarray(8).compare(Buffer.from([8, depth === 4 ? 6 : 2, 0, 0, 0])) !== 0) throw new Error('not 8-bit RGB')
    }
    if (type === 'IDAT') data.push(body)
    if (type === 'IEND') break
    at += 12 + length
  }
  const rows = inflateSync(Buffer.concat(data))
  const line = width * depth + 1
  if (rows.length !== line * height) throw new Error(`${rows.length} bytes for ${width}x${height}`)
  const rgb = Buffer.alloc(width * 3 * height)
  const alpha = Buffer.alloc(width * height)
  for (let y = 0; y < height; y++) {
    if (rows[y * line] !== 0) throw new Error('a filter that this reader does not know')
    if (depth === 3) rows.copy(rgb, y * width * 3, y * line + 1, (y + 1) * line)
    else {
      for (let x = 0; x < width; x++) {
        rows.copy(rgb, (y * width + x) * 3, y * line + 1 + x * 4, y * line + 4 + x * 4)
        alpha[y * width + x] = rows[y * line + 4 + x * 4]!
      }
    }
  }
  return depth === 4 ? { width, height, rgb, alpha } : { width, height, rgb }
}

export function chunk (type: string, body: Buffer): Buffer {
  const framed = Buffer.alloc(12 + body.length)
  framed.writeUInt32BE(body.length, 0)
  framed.write(type, 4, 'latin1')
  body.copy(framed, 8)
  framed.writeUInt32BE(crc32(framed.subarray(4, 8 + body.length)), 8 + body.length)
  return framed
}

function crc32 (bytes: Buffer): number {
  return (zlibCrc32 as ((data: Buffer) => number) | undefined)?.(bytes) ?? slowCrc32(bytes)
}

/** zlib has one of its own only in newer Nodes. */
function slowCrc32 (bytes: Buffer): number {
  let crc = 0xffffffff
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0)
  }
  return (crc ^ 0xffffffff) >>> 0
}
