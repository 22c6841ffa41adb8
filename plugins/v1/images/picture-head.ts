/** What the beginning of a picture says of it. Sizes in pixels, as it is shown: a photo that lies on its side is turned. */
export interface PictureHead {
  readonly format: 'png' | 'jpeg' | 'webp'
  readonly width: number
  readonly height: number
  /** Whether it has a channel for transparency. */
  readonly alpha: boolean
  /** Whether it has more pictures than one, each of which takes the room of the first. */
  readonly moves: boolean
}

const PNG = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])

/** Null for what is no PNG, JPEG or WebP, or breaks off before it says how large it is. Pure. */
export function pictureHead (bytes: Buffer): PictureHead | null {
  try {
    if (bytes.subarray(0, PNG.length).equals(PNG)) return pngHead(bytes)
    if (bytes[0] === 0xff && bytes[1] === 0xd8) return jpegHead(bytes)
    if (bytes.toString('latin1', 0, 4) === 'RIFF' && bytes.toString('latin1', 8, 12) === 'WEBP') return webpHead(bytes)
    return null
  } catch (error) {
    // it ends too early
    if (error instanceof RangeError) return null
    throw error
  }
}

function pngHead (png: Buffer): PictureHead | null {
  if (png.toString('latin1', 12, 16) !== 'IHDR') return null
  const kind = png.readUInt8(25)
  return {
    format: 'png',
    width: png.readUInt32BE(16),
    height: png.readUInt32BE(20),
    // palettes and plain colours say what is transparent in a chunk of its own
    alpha: kind === 4 || kind === 6 || hasChunk(png, 'tRNS'),
    moves: hasChunk(png, 'acTL')
  }
}

/** Whether a chunk stands in front of the picture. */
function hasChunk (png: Buffer, name: string): boolean {
  const [wanted, picture] = [name, 'IDAT'].map(word => Buffer.from(word, 'latin1').readUInt32BE())
  for (let at = PNG.length; at + 8 <= png.length;) {
    const type = png.readUInt32BE(at + 4)
    if (type === wanted) return true
    if (type === picture) return false
    at += 12 + png.readUInt32BE(at)
  }
  return false
}

function jpegHead (jpeg: Buffer): PictureHead | null {
  let isTurned = false
  for (let at = 2; ;) {
    if (jpeg.readUInt8(at) !== 0xff) return null
    const marker = jpeg.readUInt8(at + 1)
    // filling, and markers without a body
    if (marker === 0xff) at += 1
    else if (marker === 0x01 || (marker >= 0xd0 && marker <= 0xd7)) at += 2
    else {
      const length = jpeg.readUInt16BE(at + 2)
      if (length < 2) return null
      if (isFrame(marker)) {
        const [height, width] = [jpeg.readUInt16BE(at + 5), jpeg.readUInt16BE(at + 7)]
        return { format: 'jpeg', width: isTurned ? height : width, height: isTurned ? width : height, alpha: false, moves: false }
      }
      // the picture itself begins
      if (marker === 0xda) return null
      if (marker === 0xe1) isTurned ||= liesOnItsSide(jpeg.subarray(at + 4, at + 2 + length))
      at += 2 + length
    }
  }
}

function isFrame (marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc
}

/** Whether the camera says that it was held upright: orientations 5 to 8 of Exif. */
function liesOnItsSide (exif: Buffer): boolean {
  if (exif.toString('latin1', 0, 6) !== 'Exif\0\0' || exif.length < 16) return false
  const tiff = exif.subarray(6)
  const isLittle = tiff.toString('latin1', 0, 2) === 'II'
  const u16 = (at: number): number => isLittle ? tiff.readUInt16LE(at) : tiff.readUInt16BE(at)
  const u32 = (at: number): number => isLittle ? tiff.readUInt32LE(at) : tiff.readUInt32BE(at)
  const start = u32(4)
  if (start + 2 > tiff.length) return false
  for (let entry = start + 2, left = u16(start); left > 0 && entry + 12 <= tiff.length; entry += 12, left--) {
    if (u16(entry) === 0x0112) return u16(entry + 8) >= 5 && u16(entry + 8) <= 8
  }
  return false
}

function webpHead (webp: Buffer): PictureHead | null {
  switch (webp.toString('latin1', 12, 16)) {
    case 'VP8X': {
      const flags = webp.readUInt8(20)
      const [width, height] = [webp.readUIntLE(24, 3) + 1, webp.readUIntLE(27, 3) + 1]
      return { format: 'webp', width, height, alpha: (flags & 0x10) !== 0, moves: (flags & 0x02) !== 0 }
    }
    case 'VP8 ': {
      const [width, height] = [webp.readUInt16LE(26) & 0x3fff, webp.readUInt16LE(28) & 0x3fff]
      return { format: 'webp', width, height, alpha: false, moves: false }
    }
    case 'VP8L': {
      const bits = webp.readUInt32LE(21)
      return { format: 'webp', width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1, alpha: (bits & 0x10000000) !== 0, moves: false }
    }
    default: return null
  }
}
