import { handled, type RouteCall } from './route.js'

/**
 * Waits for an operator's verb. A client that leaves ends the wait and not the verb: what was asked for is done,
 * and its row in the activity log tells how it ended.
 */
export function whileConnected<T> ({ signal }: Pick<RouteCall, 'signal'>, work: Promise<T>): Promise<T | typeof handled> {
  return new Promise((resolve, reject) => {
    const leave = (): void => resolve(handled)
    signal.addEventListener('abort', leave, { once: true })
    if (signal.aborted) leave()
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave))
  })
}
