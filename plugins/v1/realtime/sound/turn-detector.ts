/** How turns are told apart. */
export interface TurnRule {
  /** How much louder than what is around it speech has to be: 0 is anything, 1 is 27 dB. */
  readonly threshold: number
  /** Silence that ends a turn, in milliseconds. */
  readonly silenceMs: number
}

/** Where in the samples that were pushed, from the first one on. */
export interface TurnChange {
  readonly kind: 'started' | 'stopped'
  readonly at: number
}

const FRAME_MS = 20
/** Speech is what is loud for so many frames of the last ones; a click is not. */
const ONSET = { frames: 3, of: 5 }
/** Between words speech is softer than where it begins. */
const EASIER = 0.15
/** What is taken for the room, in dB below full scale. */
const FLOOR = { lowest: -60, highest: -30, rise: 3 }
/** Above the floor, in dB: where loudness begins to count, and where it counts whole. */
const LOUDNESS = { from: 3, span: 24 }

/**
 * Tells by its loudness when there is speech. The room is measured all the time: at once where it gets quieter, by 3 dB a second
 * where it gets louder, so that a fan that starts is speech for some seconds and then is not.
 */
export class TurnDetector {
  readonly #rule: TurnRule
  readonly #frame: Int16Array
  readonly #recent: boolean[] = []
  #filled = 0
  #count = 0
  #floor: number = FLOOR.lowest
  #speaks = false
  #silentMs = 0

  constructor (rate: number, rule: TurnRule) {
    this.#rule = rule
    this.#frame = new Int16Array(rate * FRAME_MS / 1000)
  }

  get speaks (): boolean { return this.#speaks }

  /** Samples that were pushed. */
  get count (): number { return this.#count }

  push (samples: Int16Array): TurnChange[] {
    const changes: TurnChange[] = []
    for (let from = 0; from < samples.length;) {
      const piece = samples.subarray(from, from + this.#frame.length - this.#filled)
      this.#frame.set(piece, this.#filled)
      this.#filled += piece.length
      from += piece.length
      this.#count += piece.length
      if (this.#filled < this.#frame.length) break
      this.#filled = 0
      const change = this.#hear(levelOf(this.#frame))
      if (change !== null) changes.push(change)
    }
    return changes
  }

  /** The turn was ended by other means. */
  reset (): void {
    this.#speaks = false
    this.#silentMs = 0
    this.#recent.length = 0
  }

  #hear (level: number): TurnChange | null {
    const loudness = Math.max(0, Math.min(1, (level - this.#floor - LOUDNESS.from) / LOUDNESS.span))
    const next = level < this.#floor ? level : this.#floor + FLOOR.rise * FRAME_MS / 1000
    this.#floor = Math.max(FLOOR.lowest, Math.min(FLOOR.highest, next, Math.max(level, this.#floor)))
    const isLoud = loudness > 0 && loudness >= this.#rule.threshold - (this.#speaks ? EASIER : 0)
    return this.#speaks ? this.#ending(isLoud) : this.#beginning(isLoud)
  }

  #beginning (isLoud: boolean): TurnChange | null {
    this.#recent.push(isLoud)
    if (this.#recent.length > ONSET.of) this.#recent.shift()
    if (this.#recent.filter(Boolean).length < ONSET.frames) return null
    const frames = this.#recent.length - this.#recent.indexOf(true)
    this.#speaks = true
    this.#silentMs = 0
    this.#recent.length = 0
    return { kind: 'started', at: Math.max(0, this.#count - frames * this.#frame.length) }
  }

  #ending (isLoud: boolean): TurnChange | null {
    this.#silentMs = isLoud ? 0 : this.#silentMs + FRAME_MS
    if (this.#silentMs < this.#rule.silenceMs) return null
    this.reset()
    return { kind: 'stopped', at: this.#count }
  }
}

/** In dB below full scale. */
function levelOf (frame: Int16Array): number {
  let sum = 0
  for (let i = 0; i < frame.length; i++) sum += frame[i]! * frame[i]!
  return 10 * Math.log10(sum / frame.length / 32_768 ** 2 + 1e-10)
}
