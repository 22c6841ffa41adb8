import type { Clock } from '../../contract/index.js'
import type { LogOptions } from '../../contract/provider/engine-runtime.js'
import { createLineSplitter } from '../../contract/text/line-splitter.js'
import type { EngineProcess } from './process-engine.js'
import { pause } from '../../async/waiting.js'

/** How often a file that is followed is looked at. */
const FOLLOW_POLL_MS = 100

/** The lines of an engine's output as `ContainerRuntime.logs` promises them. Reads only as fast as it is read. */
export async function* followOutput (engine: EngineProcess, clock: Clock, options: LogOptions): AsyncIterable<string> {
  const { tail, follow, signal } = options
  const { lines, position } = await engine.log.tail(tail, follow)
  yield* until(signal, lines)
  if (!follow) return
  const splitter = createLineSplitter()
  let at = position
  while (!signal.aborted) {
    // asked before reading: all that an ended engine wrote is in the file by then
    const ended = !engine.running
    const { chunk, next } = await engine.log.read(at)
    at = next
    if (chunk.length > 0) {
      yield* until(signal, splitter.push(chunk))
    } else if (ended) {
      yield* splitter.end()
      return
    } else {
      await pause(clock, FOLLOW_POLL_MS, signal)
    }
  }
}

function* until (signal: AbortSignal, lines: Iterable<string>): Iterable<string> {
  for (const line of lines) {
    if (signal.aborted) return
    yield line
  }
}
