import { setMaxListeners } from 'node:events'
import type { Clock } from '../contract/services/clock.js'

/** Resolves after `ms`, or at once when the signal aborts; never rejects. */
export function pause (clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted === true) return Promise.resolve()
  return new Promise(resolve => {
    const done = (): void => {
      timer.cancel()
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const timer = clock.setTimer(ms, done)
    signal?.addEventListener('abort', done)
  })
}

/** Whether `promise` settles within `ms`. Its rejection counts as settled and stays the caller's to handle. */
export async function settlesWithin (clock: Clock, ms: number, promise: Promise<unknown>): Promise<boolean> {
  const over = new AbortController()
  const settled = promise.then(() => true, () => true)
  const late = pause(clock, ms, over.signal).then(() => false)
  try {
    return await Promise.race([settled, late])
  } finally {
    over.abort()
  }
}

/** Asks `condition` again and again, at least once, until it says yes (true) or `withinMs` is over (false). */
export async function pollUntil (
  clock: Clock, everyMs: number, withinMs: number, condition: () => Promise<boolean>
): Promise<boolean> {
  const deadline = clock.monotonic() + withinMs
  while (!await condition()) {
    if (clock.monotonic() >= deadline) return false
    await pause(clock, everyMs)
  }
  return true
}

interface Waiter {
  readonly resolve: (value: never) => void
  readonly reject: (error: unknown) => void
}

/** By what they wait for. A promise keeps each reaction until it settles, so all of them have one together. */
const waiters = new WeakMap<Promise<unknown>, Set<Waiter>>()

/**
 * Rejects with the signal's reason when it aborts before `promise` settles. The work itself is not stopped by this. Any
 * number may wait for a promise: those that leave leave nothing behind.
 */
export function abortable<T> (promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const waiting = waitersOf(promise)
  if (signal.aborted) return Promise.reject(abortReason(signal))
  return new Promise((resolve, reject) => {
    const left = (): void => {
      waiting.delete(waiter)
      reject(abortReason(signal))
    }
    const stay = (): void => signal.removeEventListener('abort', left)
    const waiter: Waiter = {
      resolve: value => { stay(); resolve(value) },
      reject: error => { stay(); reject(error) }
    }
    waiting.add(waiter)
    signal.addEventListener('abort', left, { once: true })
  })
}

function waitersOf (promise: Promise<unknown>): Set<Waiter> {
  const known = waiters.get(promise)
  if (known !== undefined) return known
  const waiting = new Set<Waiter>()
  const settled = (tell: (waiter: Waiter) => void): void => {
    waiters.delete(promise)
    for (const waiter of waiting) tell(waiter)
  }
  waiters.set(promise, waiting)
  // a rejection that nobody waits for any more interests no one
  promise.then(value => settled(({ resolve }) => resolve(value as never)), error => settled(({ reject }) => reject(error)))
  return waiting
}

function abortReason (signal: AbortSignal): Error {
  return signal.reason instanceof Error ? signal.reason : new DOMException('aborted', 'AbortError')
}

/**
 * Does `work` with a signal that aborts with `signal`, if any, or with a `TimeoutError` after `ms`; it is the work that has to
 * heed it. Keeps no process alive, and nothing of it stays once the work is over: what the work left under way is aborted, and of
 * an answer that is read later, the reading belongs to the work. `AbortSignal.any` is not for this: it does not hold what it is
 * made of, so that a timeout that nothing else refers to is collected as garbage and never comes, and Node 22 keeps what it makes
 * of one for good.
 */
export async function within<T> (signal: AbortSignal | null, ms: number, work: (bound: AbortSignal) => Promise<T>): Promise<T> {
  // one for each work that is under way; of none it would be the process's default
  if (signal !== null) setMaxListeners(0, signal)
  const { controller, dispose } = linkedAbort(...signal === null ? [] : [signal])
  const timer = setTimeout(() => controller.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError')), Math.ceil(ms))
  timer.unref()
  try {
    return await work(controller.signal)
  } finally {
    clearTimeout(timer)
    dispose()
    controller.abort(new DOMException('The work is over', 'AbortError'))
  }
}

/** A signal of its own that aborts with any of the given ones. `dispose` unhooks it from them: they may live long. */
export function linkedAbort (...sources: readonly AbortSignal[]): { controller: AbortController, dispose: () => void } {
  const controller = new AbortController()
  const hooks = sources.map(source => {
    const forward = (): void => controller.abort(source.reason)
    if (source.aborted) forward()
    else source.addEventListener('abort', forward)
    return () => source.removeEventListener('abort', forward)
  })
  return { controller, dispose: () => { for (const unhook of hooks) unhook() } }
}
