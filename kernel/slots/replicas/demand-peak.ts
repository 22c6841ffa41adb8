const PARTS = 10

/**
 * The most requests at once, at work or in line, within a window that moves with the time: ten parts, each with the
 * most of its own. Times are on the monotonic clock.
 */
export class DemandPeak {
  readonly #parts: Array<{ readonly from: number, most: number }> = []

  note (requests: number, now: number, windowMs: number): void {
    const last = this.#parts.at(-1)
    if (last !== undefined && now - last.from < windowMs / PARTS) last.most = Math.max(last.most, requests)
    else this.#parts.push({ from: now, most: requests })
    this.#forget(now, windowMs)
  }

  /** @param present what there is now: it lasted since it was noted last */
  most (present: number, now: number, windowMs: number): number {
    this.#forget(now, windowMs)
    return this.#parts.reduce((most, part) => Math.max(most, part.most), present)
  }

  /** When the oldest part leaves the window, and the most may be less; null when there is none. */
  fallsAt (windowMs: number): number | null {
    return this.#parts.length === 0 ? null : this.#parts[0]!.from + windowMs + windowMs / PARTS
  }

  /** A part counts until its end has left the window. */
  #forget (now: number, windowMs: number): void {
    while (this.#parts.length > 0 && this.#parts[0]!.from + windowMs + windowMs / PARTS <= now) this.#parts.shift()
  }
}
