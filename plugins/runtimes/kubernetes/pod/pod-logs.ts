import { createLineSplitter, isSvcError, pause, svcError, type Clock, type LogOptions } from 'svc-gateway/plugin'
import type { ClusterApi } from '../api/cluster-api.js'
import { CONTAINER } from './pod-names.js'

export interface PodLogDeps {
  readonly api: ClusterApi
  readonly clock: Clock
  /** Whether the engine has not ended yet; null when it is gone. */
  readonly runs: (id: string) => Promise<boolean | null>
  /** The driver is closed. */
  readonly closed: AbortSignal
}

const STAMP = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d) ?/
const LONGEST_PIECE = 16_384
/** A line with its time. */
const LONGEST_LINE = LONGEST_PIECE + 64
const AGAIN_MS = 500

/**
 * Lines of a pod, as `ContainerRuntime.logs` says. Each comes with its time, by which a follower goes on where it was when
 * the connection broke.
 */
export async function* podLogs (
  id: string, { tail, follow, signal }: LogOptions, { api, clock, runs, closed }: PodLogDeps
): AsyncIterable<string> {
  if (signal.aborted) return
  const until = AbortSignal.any([signal, closed])
  /** Of the last line that was told. */
  let last = ''
  for (let isFirst = true; ; isFirst = false) {
    const since = last === '' ? {} : { sinceTime: last.replace(/\.\d+Z$/, 'Z') }
    const query = {
      container: CONTAINER, timestamps: 'true', ...follow ? { follow: 'true' } : {}, ...isFirst ? { tailLines: String(tail) } : since
    }
    try {
      const body = await api.stream({ path: `${api.path('pods', id)}/log`, query, signal: until })
      const lines = createLineSplitter(LONGEST_LINE)
      /** Of the line that a piece belongs to. */
      let isOld = false
      const from = last
      for await (const chunk of body) {
        for (const line of lines.push(chunk as Buffer)) {
          const { time, text } = stamped(line)
          if (time !== null) {
            isOld = from !== '' && time <= from
            if (!isOld) last = time
          }
          if (!isOld) yield* pieces(text)
        }
      }
      for (const line of lines.end()) {
        const { time, text } = stamped(line)
        if (time !== null && from !== '' && time <= from) continue
        if (time !== null) last = time
        yield* pieces(text)
      }
      if (!follow || await runs(id) !== true) return
    } catch (error) {
      if (until.aborted) return
      const status = isSvcError(error) ? error.details.status : undefined
      if (status === 404) {
        if (isFirst) throw svcError('runtime.not_found', `there is no engine ${id}`)
        return
      }
      // a container that never ran has said nothing
      if (status === 400) return
      if (!follow || isFirst) throw error
      if (await runs(id).catch(() => true) !== true) return
    }
    await pause(clock, AGAIN_MS, until).catch(() => {})
    if (until.aborted) return
  }
}

/** A line's time, made comparable as text, and the rest; a piece of a longer line has none. Pure. */
export function stamped (line: string): { readonly time: string | null, readonly text: string } {
  const found = STAMP.exec(line)
  if (found === null) return { time: null, text: line }
  const [all, seconds, fraction = '', zone] = found
  const whole = zone === 'Z' ? seconds! : new Date(`${seconds}${zone}`).toISOString().slice(0, 19)
  return { time: `${whole}.${fraction.padEnd(9, '0')}Z`, text: line.slice(all.length) }
}

function pieces (text: string): readonly string[] {
  if (text.length <= LONGEST_PIECE) return [text]
  const first = text.charCodeAt(LONGEST_PIECE - 1)
  const cut = first >= 0xD800 && first <= 0xDBFF ? LONGEST_PIECE - 1 : LONGEST_PIECE
  return [text.slice(0, cut), text.slice(cut)]
}
