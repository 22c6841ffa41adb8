/** Runs pieces of work one after the other, in the order they were asked for. A failure only reaches its own caller. */
export function createSerial (): <T>(work: () => Promise<T>) => Promise<T> {
  let tail: Promise<unknown> = Promise.resolve()
  return work => {
    const result = tail.then(work)
    tail = result.catch(() => undefined)
    return result
  }
}
