import { Store } from '../../../../../plugins/services/memory-engine/store/store.js'

/**
 * Counts the steps of all databases of this process from now on, each statement that may write and each end of a transaction, and
 * kills it before the one with this number. What only reads is no step: what a kill leaves before it, a kill leaves before the
 * step that follows.
 */
export function killBefore (at: number): { readonly steps: () => number } {
  let [steps, depth] = [0, 0]
  const step = (): void => {
    if (++steps === at) process.kill(process.pid, 'SIGKILL')
  }
  const { run, exec, transaction } = Store.prototype
  Object.assign(Store.prototype, {
    run (this: Store, ...args: Parameters<typeof run>) {
      step()
      return run.apply(this, args)
    },
    exec (this: Store, sql: string) {
      step()
      exec.call(this, sql)
    },
    transaction<T> (this: Store, work: () => T): T {
      return transaction.call(this, () => {
        depth++
        try {
          const result = work()
          if (depth === 1) step()
          return result
        } finally {
          depth--
        }
      }) as T
    }
  })
  return { steps: () => steps }
}

/** What a program of a series is told: its database, and before which step it is killed. */
export function toldProgram (): { readonly path: string, readonly at: number } {
  return { path: process.argv[2]!, at: Number(process.argv[3] ?? Infinity) }
}
