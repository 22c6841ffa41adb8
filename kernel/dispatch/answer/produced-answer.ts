import { giverOf, type AdaptedAnswer, type ChunkGiver, type ChunkReader, type SvcError } from '../../contract/index.js'
import type { AnswerSink } from './answer-sink.js'

/** Made between requests: a signal takes longer than most of what stands between a request and its engine's. */
let spare: AbortController | null = null

function madeAhead (): AbortController {
  const controller = new AbortController()
  // made when it is asked for first
  void controller.signal
  return controller
}

/**
 * Runs work that makes an answer and hands it to a sink: at the reader's pace, cancellable at every step, with one
 * single end. Work that fails has its signal aborted. Returns the function that gives it up.
 * @param told what the reader is told of a failure; `started` once the head is out
 */
export function runProduced (
  work: (signal: AbortSignal) => Promise<AdaptedAnswer>, sink: AnswerSink,
  told: (error: unknown, started: boolean) => SvcError, settled: () => void
): (reason: Error) => void {
  const controller = spare ?? new AbortController()
  spare = null
  let started = false
  /** Ends the pause that a slow client asked for. */
  let wake = (): void => {}
  let leave = (): void => {}
  /** Hands all of it on, and the end in the turn of the last chunk, with which it leaves. */
  const given = (giver: ChunkGiver): Promise<void> => new Promise((resolve, reject) => {
    wake = () => giver.resume()
    leave = () => {
      giver.leave()
      resolve()
    }
    giver.give(new SinkReader(sink, resolve, reject))
  })
  const run = async (): Promise<void> => {
    const answer = await work(controller.signal)
    controller.signal.throwIfAborted()
    started = true
    sink.onDrain(() => wake())
    sink.head(answer.status, Object.entries(answer.headers).flat())
    const giver = Buffer.isBuffer(answer.body) ? null : giverOf(answer.body)
    if (giver !== null) return await given(giver)
    const chunks = Buffer.isBuffer(answer.body) ? [answer.body] : answer.body
    for await (const chunk of chunks) {
      controller.signal.throwIfAborted()
      if (!sink.data(chunk)) await new Promise<void>(resolve => { wake = resolve })
    }
    controller.signal.throwIfAborted()
    sink.end()
  }
  run().catch((error: unknown) => {
    if (controller.signal.aborted) return
    sink.fail(told(error, started))
    // what the work has begun and not waited for
    controller.abort(error)
  }).finally(() => {
    settled()
    spare ??= madeAhead()
  })
  return reason => {
    controller.abort(reason)
    leave()
    wake()
  }
}

class SinkReader implements ChunkReader {
  readonly #sink: AnswerSink
  readonly #ended: () => void
  readonly fail: (error: unknown) => void

  constructor (sink: AnswerSink, ended: () => void, fail: (error: unknown) => void) {
    this.#sink = sink
    this.#ended = ended
    this.fail = fail
  }

  data (chunk: Buffer): boolean {
    return this.#sink.data(chunk)
  }

  flush (): void {
    this.#sink.flush?.()
  }

  end (): void {
    try {
      this.#sink.end()
      this.#ended()
    } catch (error) {
      this.fail(error)
    }
  }
}
