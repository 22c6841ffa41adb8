import { createHash } from 'node:crypto'
import {
  canonicalJson, messageOf, svcError, type SvcError, type ApprovalGate, type ApprovalRequest, type ApprovalRow,
  type ApprovalRows, type Clock, type CleanText, type EventBus, type Logger, type ToolOutcome
} from 'svc-gateway/plugin'
import { Deadlines } from './deadlines.js'
import { approvalsError } from './errors.js'
import { followApprovals, waitForEnd } from './follow.js'
import type { Approval, ApprovalEvent, ApprovalInbox, ApprovalListQuery, ApprovalPage, ApprovalReader } from './ref.js'
import { toolOutcome, type RunOutcome } from './run-outcome.js'
import { keptArgs, keptResult, shownApproval } from './shown.js'

const MOST_PENDING = 200
/** One agent that asks for everything must not keep the others out. */
const MOST_PENDING_OF_ONE = 50
const MOST_ARGUMENT_BYTES = 64 * 1024
/** Entries that are over. */
const MOST_KEPT = 1000

export interface InboxOptions {
  readonly rows: ApprovalRows
  readonly clock: Clock
  readonly events: EventBus
  readonly log: Logger
  readonly clean: CleanText
  readonly ttlMs: () => number
  /** Whether it needs no operator. */
  readonly isAuto: (request: ApprovalRequest) => boolean
  /** The error of a code that was kept. */
  readonly errorOf: (code: string, message: string) => SvcError
  /** Does what was approved; must end when the signal aborts. */
  readonly run: (row: ApprovalRow, approvedBy: string, signal: AbortSignal) => Promise<RunOutcome>
}

/** The entries, who may decide them, and that each runs once. */
export class Inbox implements ApprovalInbox, ApprovalGate {
  readonly #options: InboxOptions
  readonly #deadlines: Deadlines
  readonly #running = new Set<Promise<unknown>>()
  readonly #halt = new AbortController()

  constructor (options: InboxOptions) {
    const { clock, ttlMs } = this.#options = options
    this.#deadlines = new Deadlines({ clock, ttlMs, onDue: ids => { this.#expire(ids) } })
  }

  /** Takes up what the gateway's last run left. */
  resume (): void {
    const { rows, log } = this.#options
    for (const row of rows.list({ state: 'approved', limit: MOST_PENDING * 10 })) {
      const message = 'the gateway stopped after it was approved: it may have run, wholly or in part; check before you request it again'
      log.warn({ approval: row.id, tool: row.tool, server: row.server }, `approved call of ${row.tool}: ${message}`)
      this.#finish(row, { kind: 'failed', error: { code: 'approvals.interrupted', message } })
    }
    for (const row of rows.list({ state: 'pending', limit: MOST_PENDING * 10 })) this.#deadlines.add(row.id, Date.parse(row.enqueued_at))
    this.lapse()
  }

  /** Expires what is due; to be called as well when the limit changes. */
  readonly lapse = (): void => {
    this.#expire(this.#deadlines.due())
    this.#deadlines.arm()
  }

  // async: what is refused rejects
  async ask (request: ApprovalRequest): Promise<{ kind: 'pending', id: string, state: string } | { kind: 'go' }> {
    const { server, tool, args, primary } = request
    if (this.#options.isAuto(request)) return { kind: 'go' }
    this.lapse()
    const { rows } = this.#options
    const text = canonicalJson(args)
    const about = primary === null ? createHash('sha256').update(text).digest('hex') : `primary:${primary}`
    // in private mode a call reads and writes what is its agent's alone
    const key = request.private ? `private:${request.agent ?? ''}:${about}` : about
    const isNew = rows.waiting(server, tool, key) === null
    if (isNew) this.#requireRoom(request, Buffer.byteLength(text))
    const { row } = rows.ask({ ...request, key })
    if (isNew) {
      this.#deadlines.add(row.id, Date.parse(row.enqueued_at))
      rows.prune(MOST_KEPT)
    }
    this.#tell(isNew ? 'enqueued' : 'repeated', row)
    return { kind: 'pending', id: row.id, state: row.state }
  }

  list ({ state, before, limit }: ApprovalListQuery, reader: ApprovalReader): ApprovalPage {
    this.lapse()
    const rows = this.#options.rows.list({ state, before, limit: limit + 1 })
    const page = rows.slice(0, limit)
    const approvals = page.map(row => this.#shown(row, reader, true))
    return { approvals, next_before: rows.length > limit ? page.at(-1)!.seq : null }
  }

  get (id: string, reader: ApprovalReader): Approval {
    this.lapse()
    return this.#shown(this.#row(id), reader)
  }

  async approve (id: string, by: string): Promise<Approval> {
    this.lapse()
    this.#halt.signal.throwIfAborted()
    const row = this.#decided(id, this.#options.rows.decide(id, { state: 'approved', by }))
    this.#tell('approved', row)
    const run = this.#execute(row, by)
    this.#running.add(run)
    try {
      return await run
    } finally {
      this.#running.delete(run)
    }
  }

  deny (id: string, by: string, reason?: string): Approval {
    this.lapse()
    const row = this.#over(id, 'denied', by, reason)
    return this.#shown(this.#decided(id, row), 'agent')
  }

  async settled (id: string, signal: AbortSignal): Promise<ToolOutcome> {
    return toolOutcome(await waitForEnd(this.#options.events, id, () => this.get(id, 'agent'), signal), this.#options.errorOf)
  }

  follow (reader: ApprovalReader, signal: AbortSignal): AsyncIterable<ApprovalEvent> {
    const entry = (id: string): Approval | null => {
      const row = this.#options.rows.get(id)
      return row === null ? null : this.#shown(row, reader, true)
    }
    const pending = (): readonly Approval[] => [...this.list({ state: 'pending', limit: MOST_PENDING }, reader).approvals].reverse()
    return followApprovals({ events: this.#options.events, pending, entry }, signal)
  }

  health (): { readonly pending: number, readonly running: number } {
    return { pending: this.#options.rows.pending(), running: this.#running.size }
  }

  /** Ends what runs; entries that wait stay. */
  async close (): Promise<void> {
    this.#halt.abort(svcError('gateway.stopping', 'the gateway, or the plugin that keeps approvals, is stopping'))
    this.#deadlines.close()
    await Promise.allSettled(this.#running)
  }

  #requireRoom ({ server, tool, actor }: ApprovalRequest, bytes: number): void {
    const { rows } = this.#options
    if (bytes > MOST_ARGUMENT_BYTES) {
      throw approvalsError('approvals.too_large', `the arguments of ${tool} have ${bytes} bytes; the limit for a call that an operator has to approve is ${MOST_ARGUMENT_BYTES}`, { details: { server, tool } })
    }
    const isFull = rows.pending() >= MOST_PENDING
    if (!isFull && rows.pending(actor) < MOST_PENDING_OF_ONE) return
    const who = isFull ? `${MOST_PENDING} calls already wait` : `${MOST_PENDING_OF_ONE} calls of this agent already wait`
    throw approvalsError('approvals.inbox_full', `${who} for an approval; try again when an operator has decided some of them`, { details: { server, tool } })
  }

  /** Never rejects. */
  async #execute (row: ApprovalRow, by: string): Promise<Approval> {
    const outcome = await this.#options.run(row, by, this.#halt.signal).catch((error: unknown): RunOutcome => {
      this.#options.log.error({ err: error, approval: row.id }, `an approved call of ${row.tool} failed: ${messageOf(error)}`)
      return { kind: 'failed', error: { code: 'system.internal', message: 'the gateway itself failed; its log says why' } }
    })
    return this.#finish(row, outcome)
  }

  #finish (row: ApprovalRow, outcome: RunOutcome): Approval {
    const { rows, clean, log } = this.#options
    const state = outcome.kind === 'done' ? 'executed' as const : 'failed' as const
    const end = {
      state,
      args: keptArgs(row, clean),
      result: outcome.kind === 'done' ? keptResult(outcome.value, row, clean) : null,
      error: outcome.kind === 'failed' ? { ...outcome.error, message: clean(outcome.error.message) } : null
    }
    let finished: ApprovalRow | null = null
    try {
      finished = rows.finish(row.id, end)
    } catch (error) {
      // the next start finds it approved, and says that it may have run
      log.error({ err: error, approval: row.id }, `how an approved call of ${row.tool} ended was not written: ${messageOf(error)}`)
    }
    this.#tell(state, finished ?? { ...row, ...end })
    return this.#shown(finished ?? { ...row, ...end }, 'agent')
  }

  #expire (ids: readonly string[]): void {
    for (const id of ids) {
      try {
        this.#over(id, 'expired', null)
      } catch (error) {
        this.#options.log.error({ err: error, approval: id }, `an approval could not be expired: ${messageOf(error)}`)
      }
    }
  }

  /** Null when something else was decided. */
  #over (id: string, state: 'denied' | 'expired', by: string | null, reason: string | null = null): ApprovalRow | null {
    const { rows, clean } = this.#options
    const before = rows.get(id)
    const row = before === null ? null : rows.decide(id, { state, by, reason, args: keptArgs(before, clean) })
    this.#deadlines.drop(id)
    if (row !== null) this.#tell(state, row)
    return row
  }

  #decided (id: string, row: ApprovalRow | null): ApprovalRow {
    this.#deadlines.drop(id)
    if (row !== null) return row
    const { state, tool } = this.#row(id)
    throw approvalsError('approvals.already_resolved', `this call of ${tool} is already ${state}; nothing was changed`, { details: { id, state } })
  }

  #row (id: string): ApprovalRow {
    const row = this.#options.rows.get(id)
    if (row !== null) return row
    throw approvalsError('approvals.not_found', `there is no approval '${id}'; GET /api/agent/approvals?state=all lists those that are kept`, { details: { id } })
  }

  #shown (row: ApprovalRow, reader: ApprovalReader, isBrief = false): Approval {
    const at = row.state === 'pending' ? this.#deadlines.expiresAt(row.id) : null
    const expiresAt = at === null ? null : Math.round(at) / 1000
    return shownApproval(row, { clean: this.#options.clean, reader, isBrief, expiresAt })
  }

  #tell (kind: ApprovalEvent['kind'], { id, server, tool, primary, actor, state, hit_count: hits, error }: ApprovalRow): void {
    const what = `${tool}${primary === null ? '' : ` (${primary})`} for ${actor}`
    this.#options.events.emit({
      type: `approval.${kind}`,
      source: `approval:${id}`,
      severity: kind === 'failed' ? 'error' : kind === 'expired' ? 'warn' : 'info',
      message: error === null ? `${what}: ${state}` : `${what}: ${state}: ${error.message}`,
      data: { id, server, tool, primary, client: actor, state, hit_count: hits }
    })
  }
}
