import { Worker } from 'node:worker_threads'
import { messageOf, type Logger } from '../../contract/index.js'

/** Where the code was that kept everything else waiting, innermost first. */
export interface Frame {
  readonly url: string
  /** From 1. */
  readonly line: number
  /** From 1; undefined if unknown. */
  readonly column: number | undefined
}

/** Both threads wake at each beat, also where nothing happens. */
const BEAT_MS = 250

/**
 * Notices when the event loop stands still for more than a second, and asks where: a thread of its own counts its beats,
 * and looks at the stack when they stop. The thread is asked of nothing while the loop goes on. Returns the function that
 * ends the watch.
 */
export function watchLoop (log: Logger, told: (frames: readonly Frame[]) => void): () => void {
  const beats = new Int32Array(new SharedArrayBuffer(4))
  const beat = setInterval(() => { Atomics.add(beats, 0, 1) }, BEAT_MS)
  beat.unref()
  const worker = new Worker(new URL('./loop-watcher.js', import.meta.url), { workerData: beats, env: {}, execArgv: [] })
  worker.unref()
  worker.on('message', told)
  worker.on('error', error => log.warn({ error: messageOf(error) }, 'plugins that block the event loop will not be reported: its watch ended'))
  return () => {
    clearInterval(beat)
    void worker.terminate()
  }
}
