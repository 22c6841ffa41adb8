const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
/** Length, type and checksum around the body of a chunk. */
const FRAME = 12

/** Texts, and what a camera would say. */
const metadata: ReadonlySet<string> = new Set(['tEXt', 'zTXt', 'iTXt', 'eXIf'])

/**
 * The pieces of a PNG without its texts, in order, as views of its bytes: ComfyUI writes the whole graph and with it the
 * prompt into each image. What is no PNG, and what follows the first chunk that is not whole, stays as it is. Pure.
 */
export function* piecesWithoutMetadata (png: Buffer): Generator<Buffer> {
  if (!png.subarray(0, SIGNATURE.length).equals(SIGNATURE)) return yield png
  let kept = 0
  for (let at = SIGNATURE.length; at + FRAME <= png.length;) {
    const end = at + FRAME + png.readUInt32BE(at)
    if (end > png.length) break
    if (metadata.has(png.toString('latin1', at + 4, at + 8))) {
      if (at > kept) yield png.subarray(kept, at)
      kept = end
    }
    at = end
  }
  if (kept < png.length) yield png.subarray(kept)
}

/** The same in one piece; the given bytes where nothing is left out. Pure. */
export function withoutMetadata (png: Buffer): Buffer {
  const pieces = [...piecesWithoutMetadata(png)]
  return pieces.length === 1 && pieces[0]!.length === png.length ? png : Buffer.concat(pieces)
}
