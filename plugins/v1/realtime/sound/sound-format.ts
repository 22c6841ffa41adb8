/** The forms in which sound goes over the wire. */
export const soundFormats = ['audio/pcm', 'audio/pcmu', 'audio/pcma'] as const
export type SoundFormat = typeof soundFormats[number]

/** Samples a second. */
export function rateOf (format: SoundFormat): number {
  return format === 'audio/pcm' ? 24_000 : 8_000
}

/** Mono samples of 16 bits. Null where the bytes are no whole number of samples. Pure. */
export function samplesOf (bytes: Buffer, format: SoundFormat): Int16Array | null {
  if (format === 'audio/pcm') return bytes.length % 2 === 0 ? int16(bytes) : null
  const table = tables[format]
  const samples = new Int16Array(bytes.length)
  for (let i = 0; i < samples.length; i++) samples[i] = table.decoded[bytes[i]!]!
  return samples
}

/** Pure. */
export function bytesOf (samples: Int16Array, format: SoundFormat): Buffer {
  if (format === 'audio/pcm') return littleEndian(samples)
  const table = tables[format]
  const bytes = Buffer.alloc(samples.length)
  for (let i = 0; i < samples.length; i++) bytes[i] = table.encoded[(samples[i]! + 32_768) >> 2]!
  return bytes
}

/** Little-endian samples, wherever they lie in memory. Pure. */
export function int16 (bytes: Buffer): Int16Array {
  const samples = new Int16Array(bytes.length >> 1)
  for (let i = 0; i < samples.length; i++) samples[i] = bytes.readInt16LE(2 * i)
  return samples
}

/** Pure. */
export function littleEndian (samples: Int16Array): Buffer {
  const bytes = Buffer.alloc(samples.length * 2)
  for (let i = 0; i < samples.length; i++) bytes.writeInt16LE(samples[i]!, 2 * i)
  return bytes
}

interface Table {
  readonly decoded: Int16Array
  /** By the upper 14 bits of a sample: neither law tells more of them apart. */
  readonly encoded: Uint8Array
}

/** G.711, made when it is first needed. */
const tables = {
  get 'audio/pcmu' () { return made.mu ??= tableOf(muLaw) },
  get 'audio/pcma' () { return made.a ??= tableOf(aLaw) }
}
const made: { mu?: Table, a?: Table } = {}

function tableOf (decode: (byte: number) => number): Table {
  const decoded = Int16Array.from({ length: 256 }, (_, byte) => decode(byte))
  const order = [...decoded.keys()].sort((a, b) => decoded[a]! - decoded[b]!)
  const encoded = new Uint8Array(1 << 14)
  let at = 0
  for (let i = 0; i < encoded.length; i++) {
    const sample = (i << 2) - 32_768 + 2
    const distance = (index: number): number => Math.abs(decoded[order[index]!]! - sample)
    while (at + 1 < order.length && distance(at + 1) <= distance(at)) at++
    encoded[i] = order[at]!
  }
  return { decoded, encoded }
}

function muLaw (byte: number): number {
  const value = ~byte & 0xff
  const magnitude = (((value & 0x0f) << 3) + 0x84 << (value >> 4 & 7)) - 0x84
  return (value & 0x80) === 0 ? magnitude : -magnitude
}

function aLaw (byte: number): number {
  const value = byte ^ 0x55
  const exponent = value >> 4 & 7
  const mantissa = (value & 0x0f) << 4
  const magnitude = exponent === 0 ? mantissa + 8 : mantissa + 0x108 << exponent - 1
  return (value & 0x80) === 0 ? -magnitude : magnitude
}
