import { messageOf, type ActivityLog, type NewActivity } from 'svc-gateway/plugin'
import { readReply, type EngineAnswer } from '../../services/memory/ref.js'
import type { Destruction } from './destruction.js'

/**
 * Asks the engine for what destroys something, and writes down that it was begun and how it ended: its refusal is an answer here,
 * and the row says so. Of what goes on after the answer the row says that it is pending, and which operation does it.
 */
export async function writtenDown (
  activity: ActivityLog, { goesOn, ...destruction }: Destruction, by: Pick<NewActivity, 'actor' | 'request_id'>, ask: () => Promise<EngineAnswer>
): Promise<EngineAnswer> {
  const from = performance.now()
  const write = (end: Partial<NewActivity>): void => activity.record({
    category: 'memory', ...destruction, ...by, severity: 'ok', outcome: 'ok', error: null, ...end, duration_ms: Math.round(performance.now() - from)
  })
  // a gateway that is killed now leaves this
  write({ severity: 'info', outcome: 'pending', message: 'started; its result has a row of its own' })
  try {
    const answer = await ask()
    if (answer.status >= 300) write({ severity: 'error', outcome: 'error', error: `the memory engine answered ${answer.status}` })
    else if (goesOn !== true) write({})
    else {
      const { bytes, value } = await readReply(answer)
      const { operation_id: id } = (value ?? {}) as { readonly operation_id?: unknown }
      write({ severity: 'info', outcome: 'pending', message: `operation ${String(id)} of the memory engine shows its result`, after: value })
      return { ...answer, body: bytes }
    }
    return answer
  } catch (error) {
    write({ severity: 'error', outcome: 'error', error: messageOf(error) })
    throw error
  }
}
