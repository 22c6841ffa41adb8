import type { GenerationEnd } from './generate.js'
import type { TextEngine, TextRequest } from './text-engine.js'
import type { Piece } from './tokens/shown-text.js'

export type JobRequest = Omit<TextRequest, 'enough'>

/** What becomes of one answer. */
export interface JobListener {
  piece (piece: Piece): void | Promise<void>
  end (end: GenerationEnd): void | Promise<void>
  /** Asked behind each piece: true ends the answer. */
  enough (): boolean
}

/** Runs the jobs side by side as slots allow. The first that fails ends the others, and all have ended when it rejects. */
export async function runJobs (
  engine: TextEngine, jobs: readonly JobRequest[], listeners: readonly JobListener[]
): Promise<GenerationEnd[]> {
  const failure = new AbortController()
  const run = async (job: JobRequest, index: number): Promise<GenerationEnd> => {
    const listener = listeners[index]!
    const signal = AbortSignal.any([job.signal, failure.signal])
    const pieces = engine.generate({ ...job, signal, enough: () => listener.enough() })
    try {
      for (;;) {
        const next = await pieces.next()
        if (next.done === true) {
          await listener.end(next.value)
          return next.value
        }
        await listener.piece(next.value)
      }
    } catch (error) {
      failure.abort(error)
      throw error
    } finally {
      await pieces.return(undefined as never) // gives the slot back when the listener failed
    }
  }
  const results = await Promise.allSettled(jobs.map(run))
  const failed = results.find(result => result.status === 'rejected')
  if (failed !== undefined) throw failure.signal.reason as Error
  return results.map(result => (result as PromiseFulfilledResult<GenerationEnd>).value)
}
