import { abortable } from '../async/waiting.js'
import {
  ANONYMOUS_AGENT, isSvcError, messageOf, svcError, type ActivityLog, type ApprovalGate, type CleanText, type Clock,
  type EventBus, type Logger, type SvcError, type ToolCaller, type ToolClass, type ToolEntry, type ToolOutcome, type ToolSource
} from '../contract/index.js'
import { rowValue } from '../events/row-value.js'
import { requestIdOf } from '../http/server/request-id.js'
import type { Args } from './own-tool.js'
import type { MountedTool } from './plugin-tools.js'

export interface ToolRunDeps {
  readonly log: Logger
  readonly clock: Clock
  readonly events: EventBus
  readonly activity: ActivityLog
  readonly clean: CleanText
}

/** One call with all that was found about it. */
export interface Found {
  readonly server: string
  readonly name: string
  readonly args: Args
  readonly caller: ToolCaller
  readonly entry: ToolEntry | null
  readonly own: MountedTool | null
  readonly source: ToolSource | null
  /** What the agent's file says; null and undefined: it has none, or it does not count. */
  readonly file?: ToolClass | null
  readonly gate?: ApprovalGate | null
  /** Set: the call was approved, and no gate is asked. */
  readonly approvedBy?: string
}

/** What stands where a secret argument was. */
const HIDDEN = '***'

/** Runs calls one by one and writes each of them down. */
export class ToolRun {
  readonly #deps: ToolRunDeps

  constructor (deps: ToolRunDeps) {
    this.#deps = deps
  }

  /** Never rejects. */
  async call (found: Found): Promise<ToolOutcome> {
    const { clock } = this.#deps
    const from = clock.monotonic()
    const requestId = found.caller.requestId ?? requestIdOf({ headers: {} })
    const args = flat(found.args)
    let outcome: ToolOutcome
    try {
      outcome = await abortable(this.#judged({ ...found, args }, requestId), found.caller.signal)
    } catch (error) {
      outcome = { kind: 'failed', error: this.#known(error, found, requestId) }
    }
    // names that were made up fill no table
    if (found.entry !== null) this.#write({ ...found, args }, outcome, requestId, clock.monotonic() - from)
    return outcome
  }

  async #judged (found: Found, requestId: string): Promise<ToolOutcome> {
    const { server, name, args, caller, entry, own, source, file = null, gate = null } = found
    if (entry === null) throw unknownTool(server, name)
    if (file !== null && file !== 'allow' && file !== 'gated') throw notAllowed(server, name, caller.agent ?? ANONYMOUS_AGENT, file)
    const verdict = own?.gate() ?? null
    const refusal = verdict === null ? null : await verdict
    if (refusal !== null) throw refusal
    // before an operator is asked: what cannot run needs no approval
    const prepared = own === null ? null : own.tool.prepare(args)
    const isGated = entry.gated || file === 'gated' || own?.tool.gatedWhen?.(prepared) === true
    if (found.approvedBy === undefined && isGated) {
      if (gate === null) throw noGate(name)
      // no operator is asked for a caller that is gone
      caller.signal.throwIfAborted()
      const { actor, agent } = caller
      const { secrets, unwritten = [] } = entry
      const answer = await gate.ask({
        server, tool: name, args, secrets, unwritten, primary: primaryOf(entry, args), actor, agent, private: caller.private ?? false, byFile: file === 'gated'
      })
      if (answer.kind === 'pending') return { kind: 'pending', approvalId: answer.id, state: answer.state }
    }
    caller.signal.throwIfAborted()
    if (own !== null) return { kind: 'done', value: await own.tool.run(prepared, caller, { log: this.#deps.log, requestId }) }
    if (source?.call === undefined) throw unknownTool(server, name)
    return { kind: 'content', content: await source.call(name, args, caller) }
  }

  #known (error: unknown, { server, name, caller }: Found, requestId: string): SvcError {
    const { aborted, reason } = caller.signal
    // whatever a caller leaves for: it is no failure of the tool
    if (aborted && (error === reason || !isSvcError(error))) return svcError('mcp.cancelled', `the call of ${name} was cancelled; what it started may continue`)
    if (isSvcError(error)) return error
    this.#deps.log.error({ request_id: requestId, server, tool: name, err: error }, 'a tool failed')
    return svcError('system.internal', `internal error: ${messageOf(error)}; see the log, request id ${requestId}`)
  }

  #write (found: Found, outcome: ToolOutcome, requestId: string, ms: number): void {
    const { server, name, args, caller: { actor, agent }, entry, approvedBy } = found
    const { events, activity, clean } = this.#deps
    const { word, end, error } = spoken(outcome)
    const severity = end === 'error' ? 'warn' : 'info'
    const { value: shown } = rowValue(hidden(args, entry), clean)
    const message = `${actor} called ${server}/${name}: ${word}`
    const approval = {
      ...(approvedBy === undefined ? {} : { approved_by: approvedBy }),
      ...(outcome.kind === 'pending' ? { approval_id: outcome.approvalId } : {})
    }
    const action = 'mcp.tool.invoked'
    activity.record({
      category: 'mcp', action, target: `${server}/${name}`, actor, severity, outcome: end, message, error,
      // a call without arguments has nothing to keep
      ...(Object.keys(args).length === 0 ? {} : { before: shown }),
      ...(Object.keys(approval).length === 0 ? {} : { after: approval }),
      duration_ms: Math.round(ms),
      request_id: requestId
    })
    const client = agent ?? 'anonymous'
    const gated = entry?.gated ?? false
    const data = { server, tool: name, client, gated, outcome: word, args: shown, request_id: requestId, ...approval }
    events.emit({ type: action, severity, source: `mcp:${server}`, message, data })
  }
}

interface Spoken {
  readonly word: string
  readonly end: 'ok' | 'error' | 'pending'
  readonly error: string | null
}

function spoken (outcome: ToolOutcome): Spoken {
  if (outcome.kind === 'pending') return { word: 'pending_approval', end: 'pending', error: null }
  if (outcome.kind === 'failed') return { word: outcome.error.code, end: 'error', error: outcome.error.message }
  if (outcome.kind === 'content' && outcome.content.isError === true) {
    return { word: 'error', end: 'error', error: 'the tool reported a failure' }
  }
  return { word: 'ok', end: 'ok', error: null }
}

/** `{ args: { … } }` is what some descriptions of tool servers say; taken when it is all there is. */
function flat (args: Args): Args {
  const { args: inner, ...rest } = args
  return typeof inner === 'object' && inner !== null && !Array.isArray(inner) && Object.keys(rest).length === 0 ? inner as Args : args
}

/** Where one argument is hidden, one that the tool does not have may hold it: it is refused, and written down all the same. */
function hidden (args: Args, entry: ToolEntry | null): Args {
  const unwritten = entry === null ? [] : [...entry.secrets, ...entry.unwritten ?? []]
  if (entry === null || unwritten.length === 0) return args
  const { inputSchema: { properties } } = entry
  const isShown = (key: string): boolean => !unwritten.includes(key) && Object.hasOwn((properties ?? {}) as object, key)
  return Object.fromEntries(Object.entries(args).map(([key, value]) => [key, isShown(key) ? value : HIDDEN]))
}

function primaryOf ({ primary }: ToolEntry, args: Args): string | null {
  const value = primary === null ? undefined : args[primary]
  return value === undefined || value === null ? null : typeof value === 'string' ? value : JSON.stringify(value)
}

export function unknownTool (server: string, name: string): SvcError {
  return svcError('mcp.unknown_tool', `the server '${server}' has no tool '${name}'; its tools may have changed, list them again`,
    { details: { server, tool: name } })
}

function notAllowed (server: string, name: string, agent: string, file: ToolClass): SvcError {
  const why = file === 'blocked' ? 'it is blocked' : `agents/${agent.toLowerCase()}.toml does not list it`
  return svcError('mcp.tool_not_allowed', `agent '${agent}' may not call ${name} of ${server}: ${why}`,
    { details: { server, tool: name, agent } })
}

export function noGate (name: string): SvcError {
  return svcError('approvals.unavailable', `${name} needs an operator's approval, and the plugin that handles approvals is not active`)
}
