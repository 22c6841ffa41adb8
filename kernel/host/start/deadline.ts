import { svcError, type Clock } from '../../contract/index.js'

/**
 * The outcome of `work`, or `plugin.timeout` when it takes longer. The work itself cannot be stopped from
 * outside; whatever it does later is told to `late`.
 */
export function withDeadline<T> (
  clock: Clock, ms: number, what: string, work: () => T | Promise<T>, late: (error: unknown) => void = () => {}
): Promise<T> {
  return new Promise((resolve, reject) => {
    let over = false
    const timer = clock.setTimer(ms, () => {
      over = true
      reject(svcError('plugin.timeout', `${what} took longer than ${ms / 1000} s`))
    })
    Promise.resolve().then(work).then(value => {
      timer.cancel()
      if (!over) resolve(value)
    }, (error: unknown) => {
      timer.cancel()
      if (over) late(error)
      else reject(error as Error)
    })
  })
}
