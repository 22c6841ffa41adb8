import { crc32, deflateRawSync, inflateRawSync } from 'node:zlib'

const LOCAL = 0x04034b50
const CENTRAL = 0x02014b50
const END = 0x06054b50
const END_BYTES = 22
/** Of archives with at least this many entries. */
const WIDE_END = 0x06064b50
const WIDE_END_BYTES = 56
const LOCATOR = 0x07064b50
const LOCATOR_BYTES = 20
const MANY = 0xffff
const COMMENT_MAX = 0xffff
const UTF8_NAMES = 0x0800
const ENCRYPTED = 0x0001
const WORTH_PACKING_BYTES = 128
const STORED = 0
const DEFLATED = 8
/** Of 1980-01-01, the first day that the format knows: archives of the same content are the same bytes. */
const FIRST_DAY = 0x0021

/** Writes a ZIP archive: entry by entry, so that no more than one of them is there unpacked. */
export class ZipWriter {
  readonly #parts: Buffer[] = []
  readonly #directory: Buffer[] = []
  #count = 0
  #at = 0

  add (name: string, bytes: Buffer): void {
    const path = Buffer.from(name)
    // packing a few bytes costs more than it saves
    const method = bytes.length < WORTH_PACKING_BYTES ? STORED : DEFLATED
    const packed = method === STORED ? bytes : deflateRawSync(bytes)
    const facts = Buffer.alloc(26)
    facts.writeUInt16LE(20, 0)
    facts.writeUInt16LE(UTF8_NAMES, 2)
    facts.writeUInt16LE(method, 4)
    facts.writeUInt16LE(FIRST_DAY, 8)
    facts.writeUInt32LE(crc32(bytes), 10)
    facts.writeUInt32LE(packed.length, 14)
    facts.writeUInt32LE(bytes.length, 18)
    facts.writeUInt16LE(path.length, 22)
    const place = Buffer.alloc(14)
    place.writeUInt32LE(this.#at, 10)
    this.#directory.push(word(CENTRAL), Buffer.from([20, 0]), facts, place, path)
    const local = [word(LOCAL), facts, path, packed]
    this.#parts.push(...local)
    this.#at += local.reduce((sum, { length }) => sum + length, 0)
    this.#count += 1
  }

  end (): Buffer {
    const index = Buffer.concat(this.#directory)
    const isMany = this.#count >= MANY
    const end = Buffer.alloc(END_BYTES)
    end.writeUInt32LE(END, 0)
    end.writeUInt16LE(isMany ? MANY : this.#count, 8)
    end.writeUInt16LE(isMany ? MANY : this.#count, 10)
    end.writeUInt32LE(index.length, 12)
    end.writeUInt32LE(this.#at, 16)
    return Buffer.concat([...this.#parts, index, ...isMany ? [this.#wideEnd(index.length)] : [], end])
  }

  /** The end of an archive of more entries than the old one can count. */
  #wideEnd (indexBytes: number): Buffer {
    const wide = Buffer.alloc(WIDE_END_BYTES + LOCATOR_BYTES)
    wide.writeUInt32LE(WIDE_END, 0)
    wide.writeBigUInt64LE(BigInt(WIDE_END_BYTES - 12), 4)
    wide.writeUInt16LE(45, 12)
    wide.writeUInt16LE(45, 14)
    wide.writeBigUInt64LE(BigInt(this.#count), 24)
    wide.writeBigUInt64LE(BigInt(this.#count), 32)
    wide.writeBigUInt64LE(BigInt(indexBytes), 40)
    wide.writeBigUInt64LE(BigInt(this.#at), 48)
    wide.writeUInt32LE(LOCATOR, WIDE_END_BYTES)
    wide.writeBigUInt64LE(BigInt(this.#at + indexBytes), WIDE_END_BYTES + 8)
    wide.writeUInt32LE(1, WIDE_END_BYTES + 16)
    return wide
  }
}

function word (value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}

/**
 * The files of a ZIP archive by name. Checks every size before it unpacks, and every checksum after. `maxBytes` bounds what all
 * of them hold unpacked. Throws an Error that says what is wrong with the archive.
 */
export function unzip (archive: Buffer, maxBytes: number): Map<string, Buffer> {
  return new Map(unzipped(archive, maxBytes))
}

/** The same, one after the other. */
export function* unzipped (archive: Buffer, maxBytes: number): Generator<readonly [name: string, content: Buffer]> {
  const { count, start } = directoryOf(archive)
  let at = start
  let left = maxBytes
  const names = new Set<string>()
  for (let n = 0; n < count; n += 1) {
    if (at + 46 > archive.length || archive.readUInt32LE(at) !== CENTRAL) throw new Error('its directory is damaged')
    const nameLength = archive.readUInt16LE(at + 28)
    const name = archive.subarray(at + 46, at + 46 + nameLength).toString()
    const size = archive.readUInt32LE(at + 24)
    left -= size
    if (left < 0) throw new Error(`it holds more than ${maxBytes} bytes unpacked`)
    if (names.has(name)) throw new Error(`it has two files named ${name}`)
    names.add(name)
    if (!name.endsWith('/')) yield [name, unpacked(archive, at, name, size)]
    at += 46 + nameLength + archive.readUInt16LE(at + 30) + archive.readUInt16LE(at + 32)
  }
}

function directoryOf (archive: Buffer): { readonly count: number, readonly start: number } {
  const end = endOf(archive)
  const count = archive.readUInt16LE(end + 10)
  const locator = end - LOCATOR_BYTES
  if (count !== MANY || locator < 0 || archive.readUInt32LE(locator) !== LOCATOR) return {
    count, start: archive.readUInt32LE(end + 16)
  }
  const wide = Number(archive.readBigUInt64LE(locator + 8))
  if (wide + WIDE_END_BYTES > locator || archive.readUInt32LE(wide) !== WIDE_END) throw new Error('its directory is damaged')
  return { count: Number(archive.readBigUInt64LE(wide + 32)), start: Number(archive.readBigUInt64LE(wide + 48)) }
}

function endOf (archive: Buffer): number {
  const first = Math.max(0, archive.length - END_BYTES - COMMENT_MAX)
  for (let at = archive.length - END_BYTES; at >= first; at -= 1) {
    if (archive.readUInt32LE(at) === END) return at
  }
  throw new Error('it is not a ZIP archive')
}

function unpacked (archive: Buffer, entry: number, name: string, size: number): Buffer {
  if ((archive.readUInt16LE(entry + 8) & ENCRYPTED) !== 0) throw new Error(`${name} is encrypted`)
  const method = archive.readUInt16LE(entry + 10)
  const packedSize = archive.readUInt32LE(entry + 20)
  const local = archive.readUInt32LE(entry + 42)
  if (local + 30 > archive.length || archive.readUInt32LE(local) !== LOCAL) throw new Error(`${name} is not where the directory says`)
  const start = local + 30 + archive.readUInt16LE(local + 26) + archive.readUInt16LE(local + 28)
  const packed = archive.subarray(start, start + packedSize)
  if (packed.length !== packedSize) throw new Error(`${name} is cut off`)
  const bytes = content(packed, method, name, size)
  if (bytes.length !== size || crc32(bytes) !== archive.readUInt32LE(entry + 16)) throw new Error(`${name} is damaged`)
  return bytes
}

function content (packed: Buffer, method: number, name: string, size: number): Buffer {
  if (method === STORED) return packed
  if (method !== DEFLATED) throw new Error(`${name} is packed in an unknown way (method ${method})`)
  try {
    // what unpacks to more than its entry says is stopped there
    return inflateRawSync(packed, { maxOutputLength: Math.max(1, size) })
  } catch {
    throw new Error(`${name} is damaged`)
  }
}
