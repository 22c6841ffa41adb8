/** Runs one piece of work after the other, in order of arrival. A failure does not stop the line. */
export class SerialQueue {
  #tail: Promise<unknown> = Promise.resolve()

  run<T> (work: () => Promise<T>): Promise<T> {
    const result = this.#tail.then(work)
    this.#tail = result.catch(() => {})
    return result
  }

  /** Resolves when all that was given so far is done, or has failed. */
  async idle (): Promise<void> {
    await this.#tail
  }
}
