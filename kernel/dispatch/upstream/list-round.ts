import type { Clock, Upstream } from '../../contract/index.js'

export interface ListTurns {
  readonly clock: Clock
  /** How many are asked at once. */
  readonly cap: number
  /** Asks one; never rejects. */
  readonly ask: (upstream: Upstream) => Promise<unknown>
  /** Called after each answer. */
  readonly heard: () => void
  /** No caller waits any more. */
  readonly signal: AbortSignal
}

const SILENT_AFTER_MS = 1_000

/**
 * Asks upstreams for their lists, some at a time. One that has said nothing for a second still may answer, and makes
 * room for the next: four silent ones do not keep a fifth from being asked. Resolves when all have answered.
 */
export async function askInTurn (upstreams: readonly Upstream[], { clock, cap, ask, heard, signal }: ListTurns): Promise<void> {
  const queue = [...upstreams]
  const answers: Array<Promise<void>> = []
  await Promise.all(Array.from({ length: Math.min(cap, queue.length) }, async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const answer = ask(next).then(heard)
      answers.push(answer)
      await turnOf(answer, clock, signal)
    }
  }))
  await Promise.all(answers)
}

/** Where no caller waits, only the answer ends a turn. */
function turnOf (answer: Promise<void>, clock: Clock, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return answer
  return new Promise(resolve => {
    const cancel = (): void => {
      timer.cancel()
      signal.removeEventListener('abort', cancel)
    }
    const timer = clock.setTimer(SILENT_AFTER_MS, () => {
      cancel()
      resolve()
    })
    signal.addEventListener('abort', cancel)
    void answer.then(() => {
      cancel()
      resolve()
    })
  })
}
