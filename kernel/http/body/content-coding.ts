import type { Transform } from 'node:stream'
import zlib from 'node:zlib'

/** What is not in every Node that the gateway runs on: zstd came with 22.15. */
type Zlib = typeof zlib & { readonly createZstdDecompress?: () => Transform }
const { createZstdDecompress } = zlib as Zlib

type Opener = (first: number) => Transform

const openers: ReadonlyMap<string, Opener> = new Map<string, Opener>([
  ['gzip', () => zlib.createGunzip()],
  ['x-gzip', () => zlib.createGunzip()],
  // the name stands for the zlib format; clients that took it at its word send the bare stream
  ['deflate', first => (first & 0x0f) === 8 ? zlib.createInflate() : zlib.createInflateRaw()],
  ['br', () => zlib.createBrotliDecompress()],
  ...createZstdDecompress === undefined ? [] : [['zstd', () => createZstdDecompress()] as const]
])

/** Codings that a body may have on this machine, as a client writes them. */
export function knownCodings (): readonly string[] {
  return [...openers.keys()].filter(name => !name.startsWith('x-'))
}

/** The coding that a header names, in lower case; null for a body that comes as it is. */
export function codingOf (header: string | undefined): string | null {
  if (header === undefined) return null
  const name = header.trim().toLowerCase()
  return name === '' || name === 'identity' ? null : name
}

export function isKnownCoding (coding: string): boolean {
  return openers.has(coding)
}

/** What decodes a body. @param first its first byte */
export function openCoding (coding: string, first: number): Transform {
  return openers.get(coding)!(first)
}
