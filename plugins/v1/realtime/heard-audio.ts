import { HEARD_RATE } from './items.js'
import { Resampler } from './sound/resample.js'
import { rateOf } from './sound/sound-format.js'
import type { Settings } from './settings.js'
import { TurnDetector } from './sound/turn-detector.js'

/** Of a turn: more than two minutes. */
const MOST_SAMPLES = 2 * 1024 * 1024
/** The beginning of a turn is found a little later than it was. */
const ONSET_SAMPLES = HEARD_RATE / 5

/** Where a turn begins or ends, in samples since the session began. */
export interface TurnEdge {
  readonly kind: 'started' | 'stopped'
  readonly at: number
}

/** What a user says, before it is an item: from the first sample of the session on, as far as it is still wanted. */
export class HeardAudio {
  #resampler: Resampler | null = null
  #detector: TurnDetector | null = null
  /** Where the detector began to count. */
  #detectorFrom = 0
  #pieces: Int16Array[] = []
  #from = 0
  #end = 0
  #rule: Settings['turns'] = null
  #format: Settings['inputFormat'] | null = null

  /** The end of what has come. */
  get end (): number { return this.#end }

  get from (): number { return this.#from }

  /** A turn goes on. */
  get isTurn (): boolean { return this.#detector?.speaks === true }

  use ({ inputFormat, turns }: Settings): void {
    if (inputFormat !== this.#format) {
      this.#format = inputFormat
      this.#resampler = new Resampler(rateOf(inputFormat), HEARD_RATE)
    }
    if (turns === this.#rule) return
    this.#rule = turns
    this.#detector = turns === null ? null : new TurnDetector(HEARD_RATE, turns)
    this.#detectorFrom = this.#end
  }

  /** Whether so many more may come before something is taken; a detector takes by itself. */
  hasRoom (samples: number): boolean {
    return this.#detector !== null || this.#end - this.#from + samples * HEARD_RATE / rateOf(this.#format ?? 'audio/pcm') <= MOST_SAMPLES
  }

  /** Samples of the session's format. Returns the edges of turns in them. */
  push (samples: Int16Array): TurnEdge[] {
    const heard = this.#resampler!.push(samples)
    this.#keep(heard)
    const detector = this.#detector
    if (detector === null) return []
    const edges: TurnEdge[] = detector.push(heard).map(({ kind, at }) => ({ kind, at: this.#detectorFrom + at }))
    const begun = edges.findLast(({ kind }) => kind === 'started')?.at ?? this.#from
    if (detector.speaks && this.#end - begun > MOST_SAMPLES) {
      detector.reset()
      edges.push({ kind: 'stopped', at: this.#end })
    }
    return edges
  }

  /** Takes from one place to another; what is in front of it goes. */
  take (from: number, to: number): Int16Array {
    this.drop(from)
    const taken = new Int16Array(Math.max(0, to - this.#from))
    let at = 0
    for (const piece of this.#pieces) {
      const part = piece.subarray(0, taken.length - at)
      taken.set(part, at)
      at += part.length
      if (at === taken.length) break
    }
    this.drop(to)
    return taken
  }

  /** While there is no speech, what may become the beginning of a turn is enough. */
  trim (): void {
    if (this.#rule !== null && !this.isTurn) this.drop(this.#end - ONSET_SAMPLES - this.#rule.prefixMs * HEARD_RATE / 1000)
  }

  /** What comes next is another sound; a turn that goes on is over. */
  close (): void {
    this.#keep(this.#resampler!.end())
    this.#detector?.reset()
    this.#detectorFrom = this.#end - (this.#detector?.count ?? 0)
  }

  #keep (heard: Int16Array): void {
    this.#pieces.push(heard)
    this.#end += heard.length
  }

  drop (until: number): void {
    let passed = 0
    while (passed < this.#pieces.length && this.#from + this.#pieces[passed]!.length <= until) {
      this.#from += this.#pieces[passed++]!.length
    }
    this.#pieces.splice(0, passed)
    const [first] = this.#pieces
    if (first === undefined || until <= this.#from) return
    const cut = Math.floor(until - this.#from)
    const rest = first.subarray(cut)
    // copied once most of it has gone: a message may hold thousands of turns
    this.#pieces[0] = rest.byteLength < rest.buffer.byteLength / 2 ? rest.slice() : rest
    this.#from += cut
  }
}
