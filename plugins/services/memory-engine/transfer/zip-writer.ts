import { constants, crc32, deflateRawSync, type ZlibOptions } from 'node:zlib'
import { PermanentFailure } from '../operations/operation.js'
import {
  CENTRAL, DEFLATED, DESCRIPTOR, END, END_BYTES, FIRST_DAY, HAS_DESCRIPTOR, LOCAL, LOCATOR, LOCATOR_BYTES, MANY, STORED,
  UTF8_NAMES, WIDE_END, WIDE_END_BYTES
} from './zip-layout.js'

const WORTH_PACKING_BYTES = 128
const LARGEST = 0xffffffff

/** Where the bytes of an archive go. Its directory comes behind all the rest, and both are written at the same time. */
export interface ZipSink {
  data (bytes: Buffer): void
  directory (bytes: Buffer): void
}

/** Of an entry. Bytes as it is packed and as it is not. */
interface Entry {
  readonly name: Buffer
  readonly flags: number
  readonly method: number
  readonly crc: number
  readonly packed: number
  readonly size: number
}

/** Writes a ZIP archive, entry by entry and large ones bit by bit. Throws what is larger than the format can tell. */
export class ZipWriter {
  readonly #sink: ZipSink
  #count = 0
  #at = 0
  #directoryBytes = 0

  constructor (sink: ZipSink) {
    this.#sink = sink
  }

  add (name: string, bytes: Buffer): void {
    // packing a few bytes costs more than it saves
    const method = bytes.length < WORTH_PACKING_BYTES ? STORED : DEFLATED
    const packed = method === STORED ? bytes : deflateRawSync(bytes, roomFor(bytes.length))
    const entry: Entry = {
      name: Buffer.from(name), flags: UTF8_NAMES, method, crc: crc32(bytes), packed: packed.length, size: bytes.length
    }
    const start = this.#at
    this.#write(Buffer.concat([word(LOCAL), factsOf(entry), entry.name]))
    this.#write(packed)
    this.#list(entry, start)
  }

  /** An entry of unknown length, of which one piece at a time is in memory. Each piece ends where bytes do. */
  async addPieces (name: string, pieces: AsyncIterable<Buffer>): Promise<void> {
    let first: Buffer | null = null
    let entry: Entry | null = null
    const start = this.#at
    for await (const piece of pieces) {
      if (entry === null && first === null) {
        first = piece
        continue
      }
      if (entry === null) {
        entry = { name: Buffer.from(name), flags: UTF8_NAMES | HAS_DESCRIPTOR, method: DEFLATED, crc: 0, packed: 0, size: 0 }
        this.#write(Buffer.concat([word(LOCAL), factsOf(entry), entry.name]))
        entry = this.#more(entry, first!)
      }
      entry = this.#more(entry, piece)
    }
    // all of it is here: nothing stands behind it
    if (entry === null) return this.add(name, first ?? Buffer.alloc(0))
    const end = deflateRawSync(Buffer.alloc(0))
    this.#write(end)
    entry = { ...entry, packed: entry.packed + end.length }
    this.#write(Buffer.concat([word(DESCRIPTOR), word(entry.crc), word(entry.packed), word(entry.size)]))
    this.#list(entry, start)
  }

  end (): void {
    const [start, bytes] = [this.#at, this.#directoryBytes]
    const isMany = this.#count >= MANY
    const end = Buffer.alloc(END_BYTES)
    end.writeUInt32LE(END, 0)
    end.writeUInt16LE(isMany ? MANY : this.#count, 8)
    end.writeUInt16LE(isMany ? MANY : this.#count, 10)
    end.writeUInt32LE(bounded(bytes), 12)
    end.writeUInt32LE(bounded(start), 16)
    this.#sink.directory(isMany ? Buffer.concat([this.#wideEnd(), end]) : end)
  }

  /** Packs a piece so that the next one can stand behind it. */
  #more (entry: Entry, piece: Buffer): Entry {
    const packed = deflateRawSync(piece, { finishFlush: constants.Z_SYNC_FLUSH })
    this.#write(packed)
    return { ...entry, crc: crc32(piece, entry.crc), packed: entry.packed + packed.length, size: entry.size + piece.length }
  }

  #write (bytes: Buffer): void {
    this.#sink.data(bytes)
    this.#at += bytes.length
  }

  #list (entry: Entry, start: number): void {
    const place = Buffer.alloc(14)
    place.writeUInt32LE(bounded(start), 10)
    const line = Buffer.concat([word(CENTRAL), Buffer.from([20, 0]), factsOf(entry), place, entry.name])
    this.#sink.directory(line)
    this.#directoryBytes += line.length
    this.#count += 1
  }

  /** The end of an archive of more entries than the old one can count. */
  #wideEnd (): Buffer {
    const wide = Buffer.alloc(WIDE_END_BYTES + LOCATOR_BYTES)
    wide.writeUInt32LE(WIDE_END, 0)
    wide.writeBigUInt64LE(BigInt(WIDE_END_BYTES - 12), 4)
    wide.writeUInt16LE(45, 12)
    wide.writeUInt16LE(45, 14)
    wide.writeBigUInt64LE(BigInt(this.#count), 24)
    wide.writeBigUInt64LE(BigInt(this.#count), 32)
    wide.writeBigUInt64LE(BigInt(this.#directoryBytes), 40)
    wide.writeBigUInt64LE(BigInt(this.#at), 48)
    wide.writeUInt32LE(LOCATOR, WIDE_END_BYTES)
    wide.writeBigUInt64LE(BigInt(this.#at + this.#directoryBytes), WIDE_END_BYTES + 8)
    wide.writeUInt32LE(1, WIDE_END_BYTES + 16)
    return wide
  }
}

const [SMALLEST_WINDOW, LARGEST_WINDOW, CHUNK_BYTES] = [9, 15, 16 * 1024]

/** A few bytes by default take 256 KiB to be packed, and hold 16 KiB as long as they are kept. */
function roomFor (bytes: number): ZlibOptions {
  const windowBits = Math.min(Math.max(Math.ceil(Math.log2(bytes)), SMALLEST_WINDOW), LARGEST_WINDOW)
  return { windowBits, memLevel: windowBits - 7, chunkSize: Math.min(bytes, CHUNK_BYTES) }
}

function factsOf ({ name, flags, method, crc, packed, size }: Entry): Buffer {
  const facts = Buffer.alloc(26)
  facts.writeUInt16LE(20, 0)
  facts.writeUInt16LE(flags, 2)
  facts.writeUInt16LE(method, 4)
  facts.writeUInt16LE(FIRST_DAY, 8)
  facts.writeUInt32LE(crc, 10)
  facts.writeUInt32LE(bounded(packed), 14)
  facts.writeUInt32LE(bounded(size), 18)
  facts.writeUInt16LE(name.length, 22)
  return facts
}

function bounded (bytes: number): number {
  if (bytes > LARGEST) throw new PermanentFailure('the archive is larger than 4 GiB; export the documents in parts, by document_id')
  return bytes
}

function word (value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}
