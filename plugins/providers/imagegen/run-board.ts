import type { Clock } from 'svc-gateway/plugin'
import type { RunView } from './ref.js'
import type { RunStep } from './run.js'

interface Sampling {
  readonly slot: string
  readonly firstValue: number
  readonly firstAt: number
  readonly value: number
  readonly max: number
  readonly at: number
}

/** How far the runs of this gateway are, by request. Times come from the clock's monotonic side. */
export class RunBoard {
  readonly #clock: Clock
  readonly #sampling = new Map<string, Sampling>()

  constructor (clock: Clock) {
    this.#clock = clock
  }

  step (run: string, slot: string, step: RunStep): void {
    if (step.phase !== 'running' || step.value === null || step.max === null) return
    const { value, max } = step
    const at = this.#clock.monotonic()
    const known = this.#sampling.get(run)
    // another sampler of the same workflow counts from its beginning
    const goesOn = known !== undefined && known.max === max && known.value <= value
    const first = goesOn ? known : { firstValue: value, firstAt: at }
    this.#sampling.set(run, { slot, value, max, at, firstValue: first.firstValue, firstAt: first.firstAt })
  }

  over (run: string): void {
    this.#sampling.delete(run)
  }

  view (slot: string): RunView | null {
    const run = [...this.#sampling.values()].filter(one => one.slot === slot).sort((a, b) => b.at - a.at)[0]
    if (run === undefined) return null
    const { value, max, firstValue, firstAt, at } = run
    const perSecond = value > firstValue && at > firstAt ? (value - firstValue) * 1000 / (at - firstAt) : null
    return { value, max, perSecond, etaS: perSecond === null ? null : (max - value) / perSecond }
  }
}
