import type { CallAnswer } from 'svc-gateway/plugin'
import { readAll, streamEvents } from '../omni/ref.js'
import { isObject, type Json } from './json.js'

const LONGEST_ANSWER_BYTES = 64 * 1024 * 1024

/**
 * A chat answer with the first of its calls alone, for a client that said `parallel_tool_calls: false` to an engine which passes
 * over it. The engine is not stopped behind its first call: what it counts at its end is true. One that was cut short in a later
 * call has ended its first one. Its body may have another length.
 */
export function withOneCall (answer: CallAnswer): CallAnswer {
  const isStream = answer.headers['content-type']?.startsWith('text/event-stream') === true
  return { ...answer, body: isStream ? eventsOf(answer.body) : wholeOf(answer) }
}

async function* wholeOf (answer: CallAnswer): AsyncGenerator<Buffer, void, undefined> {
  const bytes = await readAll(answer, LONGEST_ANSWER_BYTES)
  const completion = parsed(bytes.toString('utf8'))
  yield completion === null ? bytes : Buffer.from(JSON.stringify(new OneCall('message').in(completion)))
}

async function* eventsOf (body: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  const one = new OneCall('delta')
  for await (const { raw, data } of streamEvents(body)) {
    const chunk = data === null || !one.changes(data) ? null : parsed(data)
    if (chunk === null) yield raw
    else {
      const left = one.in(chunk)
      if (left !== null) yield Buffer.from(`data: ${JSON.stringify(left)}\n\n`)
    }
  }
}

/** Knows of each choice whether later calls were taken out of it. */
class OneCall {
  readonly #key: 'delta' | 'message'
  readonly #cut = new Set<unknown>()

  constructor (key: 'delta' | 'message') {
    this.#key = key
  }

  /** Whether an event may say something that is not for the client. */
  changes (data: string): boolean {
    return data.includes('"tool_calls"') || (this.#cut.size > 0 && data.includes('"finish_reason"'))
  }

  /** What is left of it; null for a piece of a stream in which nothing is. */
  in (answer: Json): Json | null {
    if (!Array.isArray(answer.choices)) return answer
    const all: readonly unknown[] = answer.choices
    const choices = all.flatMap(choice => isObject(choice) ? this.#choice(choice) ?? [] : [choice])
    return choices.length === 0 && all.length > 0 && answer.usage == null ? null : { ...answer, choices }
  }

  #choice (choice: Json): Json | null {
    const { [this.#key]: said, index = 0, finish_reason: reason } = choice
    const kept = isObject(said) && Array.isArray(said.tool_calls) ? this.#first(said, said.tool_calls, index) : said
    if (kept === null && reason == null) return null
    const isEnded = reason === 'length' && this.#cut.has(index)
    return { ...choice, [this.#key]: kept ?? {}, ...isEnded ? { finish_reason: 'tool_calls' } : {} }
  }

  /** Null where nothing is left. */
  #first (said: Json, calls: readonly unknown[], choice: unknown): Json | null {
    const first = calls.filter((call, i) => placeOf(call, this.#key === 'message' ? i : 0) === 0)
    if (first.length === calls.length) return said
    this.#cut.add(choice)
    const { tool_calls: _, ...others } = said
    if (first.length > 0) return { ...others, tool_calls: first }
    return Object.keys(others).length === 0 ? null : others
  }
}

/** A whole answer has its calls in order, pieces of one tell their place. */
function placeOf (call: unknown, otherwise: number): number {
  return isObject(call) && typeof call.index === 'number' ? call.index : otherwise
}

function parsed (text: string): Json | null {
  try {
    const value = JSON.parse(text) as unknown
    return isObject(value) ? value : null
  } catch {
    return null
  }
}
