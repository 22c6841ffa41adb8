import { messageOf, stateWords, type SlotService, type SlotStatus, type SseEvent } from 'svc-gateway/plugin'
import { noiseFilter } from './log-lines.js'
import { isUp } from '../record/record.js'
import type { LogTail, TailOptions } from '../ref.js'

/** Of a log that is mostly noise, this many times the wanted lines are looked through. */
const QUIET_FACTOR = 10
const LONGEST_TAIL = 20_000

/** The last lines of a slot's engine. A log that cannot be read is told as a hint, not as an error. */
export async function readTail (slots: SlotService, name: string, options: TailOptions, signal: AbortSignal): Promise<LogTail> {
  const isNoise = noiseFilter(slots.provider(name))
  const tail = options.quiet ? Math.min(options.lines * QUIET_FACTOR, LONGEST_TAIL) : options.lines
  const lines: string[] = []
  try {
    for await (const line of slots.logs(name, { tail, follow: false }, signal)) {
      if (!options.quiet || !isNoise(line)) lines.push(line)
    }
  } catch (error) {
    return { lines, hint: `the log of slot '${name}' cannot be read: ${messageOf(error)}` }
  }
  if (lines.length > 0) return { lines: lines.slice(-options.lines) }
  return { lines, hint: emptyHint(slots.status(name)) }
}

/**
 * Lines as they come, through restarts of the engine, until the client leaves or the slot is deleted. A log that
 * cannot be read gives one `degraded` event; the stream stays and goes on with the next engine.
 */
export async function* followLog (
  slots: SlotService, name: string, options: TailOptions, signal: AbortSignal
): AsyncGenerator<SseEvent> {
  const isNoise = noiseFilter(slots.provider(name))
  let followed: number | null = null
  for await (const status of slots.watch(name, signal)) {
    if (!slots.names().includes(name)) return
    const first = followed === null
    followed ??= -1
    if (!hasEngine(status) && !(first && status.failure !== null)) continue
    // a launch keeps its generation to its end, so no engine is followed twice; an old snapshot is of no use
    const { generation } = status
    if (generation === followed || generation !== slots.status(name).generation) continue
    followed = generation
    try {
      for await (const line of slots.logs(name, { tail: first ? options.lines : LONGEST_TAIL, follow: true }, signal)) {
        if (!options.quiet || !isNoise(line)) yield { data: line }
      }
    } catch (error) {
      if (signal.aborted) return
      yield { event: 'degraded', data: { message: `the log of slot '${name}' cannot be read: ${messageOf(error)}` } }
    }
  }
}

/** An engine that is going has a new generation already: it is not the next one. */
function hasEngine ({ state }: SlotStatus): boolean {
  return isUp(state) || state === 'warming'
}

function emptyHint ({ name, state, engineId }: SlotStatus): string {
  return engineId === null
    ? `slot '${name}' is ${stateWords(state)} and has no engine; load it with \`svc slot load ${name}\``
    : 'the engine has not written anything yet'
}
