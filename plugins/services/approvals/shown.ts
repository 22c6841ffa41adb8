import { redact, type ApprovalRow, type CleanText } from 'svc-gateway/plugin'
import type { Approval, ApprovalReader } from './ref.js'

const MOST_BRIEF = 2048
const MOST_KEYS = 50
const LONGEST_BRIEF = 200
const MOST_RESULT = 32 * 1024
const HIDDEN = '***'

export interface ShownOptions {
  readonly clean: CleanText
  /** Epoch seconds; null when it is decided. */
  readonly expiresAt: number | null
  readonly reader: ApprovalReader
  /** For lists and streams: large arguments and results are shortened. */
  readonly isBrief: boolean
}

export function shownApproval (row: ApprovalRow, { clean, expiresAt, reader, isBrief }: ShownOptions): Approval {
  const args = row.state === 'pending' && reader === 'operator' ? withoutSecrets(row, clean) : keptArgs(row, clean)
  const shown = isBrief ? { args: brief(args), result: brief(row.result) } : { args, result: row.result }
  return {
    id: row.id,
    server: row.server,
    tool: row.tool,
    args: shown.args as Approval['args'],
    primary: row.primary,
    client_id: row.agent ?? row.actor.replace(/^mcp:/, ''),
    state: row.state,
    hit_count: row.hit_count,
    enqueued_at: epochSeconds(row.enqueued_at),
    expires_at: expiresAt,
    decided_at: row.decided_at === null ? null : epochSeconds(row.decided_at),
    decided_by: row.decided_by,
    reason: row.reason,
    finished_at: row.finished_at === null ? null : epochSeconds(row.finished_at),
    result: shown.result,
    error: row.error,
    is_cut: shown.args !== args || shown.result !== row.result
  }
}

type Arguments = Pick<ApprovalRow, 'args' | 'secrets' | 'unwritten'>

/** Arguments as any caller may see them, and as they are kept once the call is over. */
export function keptArgs ({ args, secrets, unwritten }: Arguments, clean: CleanText): ApprovalRow['args'] {
  return withoutSecrets({ args, secrets: [...secrets, ...unwritten] }, clean)
}

/** Arguments as the operator who decides sees them. */
function withoutSecrets ({ args, secrets }: Omit<Arguments, 'unwritten'>, clean: CleanText): ApprovalRow['args'] {
  const hidden = Object.entries(args).map(([key, value]) => [key, secrets.includes(key) ? HIDDEN : value] as const)
  return redact(Object.fromEntries(hidden), clean) as ApprovalRow['args']
}

/**
 * What is kept of a result: no secret, none of the texts that its call says are unwritten (the answer to an edit has the new
 * text), and no more than an agent would read.
 */
export function keptResult (value: unknown, { args, unwritten }: Arguments, clean: CleanText): unknown {
  if (value === undefined || value === null) return null
  const told = new Set(unwritten.map(key => args[key]).filter(text => typeof text === 'string').map(text => text.trim()))
  const kept = redact(value, text => told.has(text.trim()) ? HIDDEN : clean(text))
  const text = JSON.stringify(kept)
  return text.length <= MOST_RESULT ? kept : { cut: true, characters: text.length, text: text.slice(0, MOST_RESULT) }
}

/** The same object where it is small. */
function brief (value: unknown): unknown {
  if (typeof value !== 'object' || value === null || JSON.stringify(value).length <= MOST_BRIEF) return value
  const entries = Object.entries(value)
  const shown = entries.slice(0, MOST_KEYS).map(([key, inner]) => {
    const size = JSON.stringify(inner).length
    return [key.slice(0, LONGEST_BRIEF), size <= LONGEST_BRIEF ? inner : `… ${size} characters`] as const
  })
  return Object.fromEntries(entries.length > MOST_KEYS ? [...shown, ['…', `${entries.length - MOST_KEYS} more`]] : shown)
}

function epochSeconds (iso: string): number {
  return Date.parse(iso) / 1000
}
