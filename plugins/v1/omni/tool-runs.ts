import { messageOf, type Clock } from 'svc-gateway/plugin'
import { z } from 'zod'
import { shapeProblems } from './shape-problems.js'
import type { ToolCall } from './completion.js'
import type { OmniTool, SpokenAudio, ToolResult } from './tool.js'
import type { Toolbox } from './toolbox.js'

/** Calls of one round that are run; the model is told that the others were not. */
const MOST_CALLS = 16
/** What one result may take of the model's context. */
const LONGEST_RESULT = 8 * 1024
/** An engine may have to be started, and pictures take their time. */
const TIME_LIMIT_MS = 600_000

/** One call that was made, for the client's account of it. */
export interface ToolRun {
  readonly name: string
  readonly ok: boolean
  /** The tool server that it ran on. */
  readonly server?: string
  readonly approvalId?: string
  readonly images: readonly string[]
  readonly audio: SpokenAudio | null
  /** The `tool` message that answers it. */
  readonly message: { readonly role: 'tool', readonly tool_call_id: string, readonly content: string }
}

/** Runs the calls of a round side by side. Rejects only when the signal aborts: what fails is told to the model. */
export async function runTools (
  toolbox: Toolbox, calls: readonly ToolCall[], clock: Clock, signal: AbortSignal
): Promise<ToolRun[]> {
  return await Promise.all(calls.map(async (call, i) => {
    const { name } = call.function
    const server = toolbox.get(name)?.server
    const at = server === undefined ? {} : { server }
    try {
      if (i >= MOST_CALLS) throw new Error(`not run: at most ${MOST_CALLS} calls at a time`)
      const { told, images = [], audio = null, approvalId } =
        await timed(clock, signal, limit => runTool(toolbox.get(name), call, limit))
      const waited = approvalId === undefined ? {} : { approvalId }
      return { name, ok: true, ...at, ...waited, images, audio, message: answer(call, told) }
    } catch (error) {
      signal.throwIfAborted()
      return { name, ok: false, ...at, images: [], audio: null, message: answer(call, { error: failureOf(error) }) }
    }
  }))
}

/** A tool checks what its engine answers, and what is wrong there is told in the same words as what is wrong in arguments. */
function failureOf (error: unknown): string {
  return error instanceof z.ZodError ? `the engine answered something other than this tool needs: ${shapeProblems(error)}` : messageOf(error)
}

async function runTool (
  tool: OmniTool | undefined, { function: { name, arguments: text } }: ToolCall, signal: AbortSignal
): Promise<ToolResult> {
  if (tool === undefined) throw new Error(`there is no tool '${name}'`)
  let given: unknown
  try {
    given = JSON.parse(text === '' ? '{}' : text)
  } catch (error) {
    throw new Error(`the arguments are not JSON: ${messageOf(error)}`, { cause: error })
  }
  const checked = tool.parameters.safeParse(given)
  if (!checked.success) throw new Error(`the arguments do not fit: ${shapeProblems(checked.error)}`)
  return await tool.run(checked.data, signal)
}

/** Work with a limit of time, and an end when the request ends. */
async function timed<T> (clock: Clock, signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController()
  const timer = clock.setTimer(TIME_LIMIT_MS, () => controller.abort(new Error(`it took longer than ${TIME_LIMIT_MS / 1000} s`)))
  try {
    return await work(AbortSignal.any([signal, controller.signal]))
  } finally {
    timer.cancel()
  }
}

function answer ({ id }: ToolCall, told: unknown): ToolRun['message'] {
  const text = JSON.stringify(told)
  return { role: 'tool', tool_call_id: id, content: text.length <= LONGEST_RESULT ? text : `${text.slice(0, LONGEST_RESULT)}… (cut off)` }
}
