import { realtimeError } from '../errors.js'
import { int16 } from './sound-format.js'

/** The rate of raw samples from an engine that does not tell it: what the speech API has. */
const USUAL_RATE = 24_000
const LONGEST_HEAD = 64 * 1024
const RATES = { least: 4_000, most: 192_000 }

/** Reads the sound of a speech engine piece by piece: a WAV file, of unknown length too, or raw samples. */
export class SpokenSound {
  readonly #contentType: string
  #rate = 0
  #channels = 1
  #rest: Buffer = Buffer.alloc(0)
  /** Bytes of samples that are still to come; Infinity where that is not known. */
  #left = Infinity

  constructor (contentType: string) {
    this.#contentType = contentType
  }

  /** Samples a second; 0 before the head has come. */
  get rate (): number { return this.#rate }

  /** Nothing that still comes is of it. */
  get isOver (): boolean { return this.#rate !== 0 && this.#left < 2 * this.#channels }

  /** Mono samples of 16 bits. Throws `realtime.not_sound`. */
  push (chunk: Buffer): Int16Array {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    if (this.#rate === 0 && !this.#readHead()) return new Int16Array(0)
    const frame = 2 * this.#channels
    const usable = Math.min(this.#rest.length, this.#left)
    const whole = usable - usable % frame
    const samples = mono(int16(this.#rest.subarray(0, whole)), this.#channels)
    this.#left -= whole
    this.#rest = this.#left < frame ? Buffer.alloc(0) : Buffer.from(this.#rest.subarray(whole))
    return samples
  }

  /** There is no more. Throws `realtime.not_sound` where no samples could begin. */
  end (): void {
    if (this.#rate === 0) throw this.#notSound('a WAV file that ends before its audio begins')
  }

  /** Whether the samples begin now. */
  #readHead (): boolean {
    const bytes = this.#rest
    if (bytes.length < 4) return false
    if (bytes.toString('latin1', 0, 4) !== 'RIFF') {
      this.#rate = this.#rawRate()
      return true
    }
    let at = 12
    while (at + 8 <= bytes.length) {
      const id = bytes.toString('latin1', at, at + 4)
      const size = bytes.readUInt32LE(at + 4)
      if (id === 'data') {
        if (this.#rate === 0) throw this.#notSound('a WAV file that does not declare its format')
        // what is streamed says none, or as many as there can be
        this.#left = size === 0 || size >= 0x7fffffff ? Infinity : size
        this.#rest = bytes.subarray(at + 8)
        return true
      }
      if (id === 'fmt ' && at + 24 <= bytes.length) this.#readFormat(bytes, at + 8)
      at += 8 + size + size % 2
    }
    if (bytes.length > LONGEST_HEAD) throw this.#notSound('a WAV file whose header is too long')
    this.#rate = 0
    return false
  }

  #readFormat (bytes: Buffer, at: number): void {
    const [kind, channels, bits] = [0, 2, 14].map(offset => bytes.readUInt16LE(at + offset)) as [number, number, number]
    const rate = bytes.readUInt32LE(at + 4)
    // 0xfffe says it further behind, and has these bits
    const isPlain = (kind === 1 || kind === 0xfffe) && bits === 16 && channels >= 1 && channels <= 8
    if (!isPlain || rate < RATES.least || rate > RATES.most) {
      throw this.#notSound(`a WAV file of ${bits} bits, ${channels} channels and ${rate} Hz; 16 bits are required`)
    }
    this.#rate = rate
    this.#channels = channels
  }

  #rawRate (): number {
    const type = this.#contentType
    if (!/^(audio\/(pcm|l16|raw|x-raw|wave?|x-wav)|application\/octet-stream)\b/i.test(type)) throw this.#notSound(`'${type.slice(0, 100)}'`)
    const rate = Number(/\brate=(\d{1,6})/i.exec(type)?.[1] ?? USUAL_RATE)
    return rate >= RATES.least && rate <= RATES.most ? rate : USUAL_RATE
  }

  #notSound (what: string): Error {
    return realtimeError('realtime.not_sound', `the speech engine answered with ${what}: only WAV and raw samples are supported; choose an engine that has \`response_format\` wav`)
  }
}

function mono (samples: Int16Array, channels: number): Int16Array {
  if (channels === 1) return samples
  return Int16Array.from({ length: samples.length / channels }, (_, i) => {
    let sum = 0
    for (let channel = 0; channel < channels; channel++) sum += samples[i * channels + channel]!
    return Math.round(sum / channels)
  })
}
