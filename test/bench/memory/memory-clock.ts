import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { percentile } from '../streams.js'
import type { Held } from './memory-watch.js'

/** What anyone takes of the cores is in it. Milliseconds. */
export interface OnTheClock {
  readonly loop_p999: number
  readonly loop_most: number
  /** Between two pieces of the stream. */
  readonly gap_p999: number
  readonly gap_most: number
}

/** The thread of the engine computes, and who asks it or makes vectors does. */
export const COMPUTING = 2

export interface Chat {
  /** Pauses between two pieces since it was last asked. */
  gaps (): Promise<readonly number[]>
  leave (): Promise<unknown>
}

/** A chat that goes on until it is left. Its reader has a thread of its own: what asks the memory holds up its own loop. */
export async function chatBeside (origin: string): Promise<Chat> {
  const reader = new Worker(new URL('memory-reader.js', import.meta.url), { workerData: origin })
  await once(reader, 'message')
  return {
    gaps: async () => {
      reader.postMessage('gaps')
      const [gaps] = await once(reader, 'message') as [readonly number[]]
      return gaps
    },
    leave: () => reader.terminate()
  }
}

/** Others compute as long as the work takes, each as much as a core gives it. */
export async function computingBeside (work: () => Promise<void>): Promise<void> {
  const threads = Array.from({ length: COMPUTING }, () => new Worker('for (;;) {}', { eval: true }))
  try {
    await Promise.all(threads.map(thread => once(thread, 'online')))
    await work()
  } finally {
    await Promise.all(threads.map(thread => thread.terminate()))
  }
}

export function onTheClock ({ most, p999 }: Held, gaps: readonly number[]): OnTheClock {
  return { loop_p999: p999, loop_most: most, gap_p999: percentile(gaps, 99.9), gap_most: percentile(gaps, 100) }
}

/** The larger of each. */
export function worse (one: OnTheClock, other: OnTheClock): OnTheClock {
  const names = Object.keys(one) as Array<keyof OnTheClock>
  return Object.fromEntries(names.map(name => [name, Math.max(one[name], other[name])])) as unknown as OnTheClock
}
