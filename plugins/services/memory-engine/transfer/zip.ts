import { crc32, inflateRawSync } from 'node:zlib'
import {
  CENTRAL, COMMENT_MAX, DEFLATED, ENCRYPTED, END, END_BYTES, LOCAL, LOCATOR, LOCATOR_BYTES, MANY, STORED, WIDE_END, WIDE_END_BYTES
} from './zip-layout.js'

/** It holds more than it may. */
export class TooLarge extends Error {}

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
    if (left < 0) throw new TooLarge(`it holds more than ${maxBytes} bytes unpacked`)
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
