/** Billionths of a US dollar: whole numbers, so that sums are exact. One million dollars is far below what a number can hold. */
const NANO = 1_000_000_000

/** Rounded up: a cap is never passed by what rounding gave away. */
export function toNano (usd: number): number {
  return Math.ceil(usd * NANO - 1e-6)
}

export function toUsd (nano: number): number {
  return nano / NANO
}
