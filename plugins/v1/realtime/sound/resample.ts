/** Zero crossings of the filter on each side: more is sharper and costs more. */
const CROSSINGS = 12
/** Of the lower of the two rates; the rest is the slope of the filter. */
const PASSED = 0.92

/**
 * Mono samples of 16 bits at another rate, piece by piece: a windowed sinc, tabulated for each phase that the two rates have to
 * each other. What it gives lags behind by half the filter, a millisecond or less, up to the end.
 */
export class Resampler {
  readonly #phases: readonly Float32Array[]
  readonly #up: number
  readonly #down: number
  readonly #taps: number
  /** What later samples are still made of. */
  #kept: Int16Array
  /** Of the next sample: where its filter begins in `#kept`, and its phase. */
  #at = 0
  #phase = 0

  constructor (from: number, to: number) {
    const common = divisorOf(from, to)
    this.#up = to / common
    this.#down = from / common
    const cutoff = PASSED * Math.min(1, to / from)
    const half = Math.ceil(CROSSINGS / cutoff)
    this.#taps = 2 * half
    this.#phases = from === to ? [] : Array.from({ length: this.#up }, (_, phase) => filterOf(phase / this.#up, half, cutoff))
    this.#kept = new Int16Array(half - 1)
  }

  /** What is left of sound that is over; what is pushed next is another sound. */
  end (): Int16Array {
    const half = this.#taps / 2
    const rest = this.#phases.length === 0 ? new Int16Array(0) : this.push(new Int16Array(half))
    this.#kept = new Int16Array(half - 1)
    this.#at = 0
    this.#phase = 0
    return rest
  }

  push (samples: Int16Array): Int16Array {
    if (this.#phases.length === 0) return samples
    const all = new Int16Array(this.#kept.length + samples.length)
    all.set(this.#kept)
    all.set(samples, this.#kept.length)
    const room = Math.ceil(Math.max(0, all.length - this.#at) * this.#up / this.#down) + 1
    const made = new Int16Array(room)
    let count = 0
    while (this.#at + this.#taps <= all.length) {
      const filter = this.#phases[this.#phase]!
      let sum = 0
      for (let i = 0; i < filter.length; i++) sum += filter[i]! * all[this.#at + i]!
      made[count++] = Math.max(-32768, Math.min(32767, Math.round(sum)))
      this.#phase += this.#down
      while (this.#phase >= this.#up) {
        this.#phase -= this.#up
        this.#at++
      }
    }
    const used = Math.min(this.#at, all.length)
    this.#at -= used
    this.#kept = all.slice(used)
    return made.subarray(0, count)
  }
}

/** All of a sound at another rate. Pure. */
export function resampled (samples: Int16Array, from: number, to: number): Int16Array {
  const resampler = new Resampler(from, to)
  const [head, tail] = [resampler.push(samples), resampler.end()]
  const all = new Int16Array(head.length + tail.length)
  all.set(head)
  all.set(tail, head.length)
  return all
}

/** @param offset between two samples, of the one that is made */
function filterOf (offset: number, half: number, cutoff: number): Float32Array {
  const filter = new Float32Array(2 * half)
  let sum = 0
  for (let i = 0; i < filter.length; i++) {
    const distance = i - (half - 1) - offset
    const angle = Math.PI * distance * cutoff
    const sinc = angle === 0 ? 1 : Math.sin(angle) / angle
    const window = 0.5 * (1 + Math.cos(Math.PI * distance / half))
    filter[i] = sinc * window
    sum += filter[i]!
  }
  return filter.map(value => value / sum)
}

function divisorOf (a: number, b: number): number {
  while (b !== 0) [a, b] = [b, a % b]
  return a
}
