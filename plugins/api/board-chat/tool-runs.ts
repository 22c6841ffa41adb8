import { jsonExcess, messageOf, type Clock, type ToolCaller, type ToolCatalogue, type ToolOutcome } from 'svc-gateway/plugin'
import { z } from 'zod'
import type { ApprovalInbox } from '../../services/approvals/ref.js'
import type { ChatTool } from './chat-tools.js'
import { MOST_ARGUMENTS, type ModelCall } from './model-round.js'

/** How long a model waits for an operator; then it is told that the call still waits. */
const APPROVAL_WAIT_MS = 300_000

export interface ToolDeps {
  readonly tools: ToolCatalogue
  readonly inbox: ApprovalInbox
  readonly clock: Clock
}

/** Runs one call. Resolves with what the model and the client are told, also of a failure; rejects when the signal aborts. */
export async function runTool (
  { tools, inbox, clock }: ToolDeps, tool: ChatTool | undefined, { name, args: text }: ModelCall, caller: ToolCaller
): Promise<unknown> {
  const { signal } = caller
  signal.throwIfAborted()
  try {
    if (tool === undefined) throw new Error(`there is no tool '${name}'`)
    const { server, name: own } = tool.entry
    const outcome = await tools.call(server, own, tool.args(argumentsOf(text)), caller)
    // also for a client that has left meanwhile: it takes its call back
    if (outcome.kind === 'pending') return await decided(outcome.approvalId, { tools, inbox, clock }, caller)
    signal.throwIfAborted()
    return resultOf(outcome)
  } catch (error) {
    signal.throwIfAborted()
    return { error: error instanceof z.ZodError ? `the arguments do not fit: ${z.prettifyError(error)}` : messageOf(error) }
  }
}

/** What became of a call that waits for an operator. A client that leaves takes its call back. */
async function decided (id: string, { tools, inbox, clock }: ToolDeps, { signal, actor }: ToolCaller): Promise<unknown> {
  const patience = new AbortController()
  const timer = clock.setTimer(APPROVAL_WAIT_MS, () => patience.abort())
  try {
    return resultOf(await tools.settled(id, AbortSignal.any([signal, patience.signal])))
  } catch (error) {
    if (signal.aborted) takeBack(inbox, id, actor)
    else if (patience.signal.aborted) {
      return { status: 'pending_approval', approval_id: id, note: 'no operator has decided yet; the call is still pending, tell the user' }
    }
    throw error
  } finally {
    timer.cancel()
  }
}

/** Unless someone else asked for the same. */
function takeBack (inbox: ApprovalInbox, id: string, actor: string): void {
  try {
    if (inbox.get(id, 'agent').hit_count === 1) inbox.deny(id, actor, 'the chat that requested it was closed')
  } catch {
    // it was decided in this moment
  }
}

/** Throws for what is no JSON object, or one that is too long or too complex. */
export function argumentsOf (text: string): Readonly<Record<string, unknown>> {
  if (text.length > MOST_ARGUMENTS) throw new Error(`the arguments are longer than ${MOST_ARGUMENTS} characters`)
  const excess = jsonExcess(Buffer.from(text))
  if (excess !== null) throw new Error(`${excess.code}: ${excess.message.replace('the JSON body', 'the JSON of the arguments')}`, { cause: excess })
  let given: unknown
  try {
    given = JSON.parse(text.trim() === '' ? '{}' : text)
  } catch (error) {
    throw new Error(`the arguments are not JSON: ${messageOf(error)}`, { cause: error })
  }
  if (typeof given !== 'object' || given === null || Array.isArray(given)) throw new Error('the arguments are not a JSON object')
  return given as Readonly<Record<string, unknown>>
}

/** Throws what failed. */
function resultOf (outcome: ToolOutcome): unknown {
  switch (outcome.kind) {
    case 'done': return outcome.value
    case 'content': return outcome.content.structuredContent ?? outcome.content.content
    case 'failed': throw new Error(`${outcome.error.code}: ${outcome.error.message}`, { cause: outcome.error })
    case 'pending': throw new TypeError('a pending call has no result')
  }
}
