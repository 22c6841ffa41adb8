/** Time as a parameter. Tests hand in a clock they move by hand. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now (): number
  /** Milliseconds from an arbitrary origin; never goes back. */
  monotonic (): number
  /** Calls `fn` once after `ms`. Timers never keep the process alive. */
  setTimer (ms: number, fn: () => void): Timer
}

export interface Timer {
  cancel (): void
}
