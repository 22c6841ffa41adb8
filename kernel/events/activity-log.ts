import { setImmediate as turn } from 'node:timers/promises'
import {
  messageOf, shownMessage, shownName, type ActivityFailure, type ActivityLog, type ActivityNote, type ActivityQuery,
  type ActivityRow, type CleanText, type Clock, type Logger, type NewActivity, type Timer
} from '../contract/index.js'
import { Changes } from '../async/changes.js'
import type { ActivityStore } from './activity-store.js'
import { MOST_JSON, rowValue } from './row-value.js'

export interface ActivitySettings {
  readonly enabled: boolean
  readonly retention_days: number
  readonly max_rows: number
}

export interface ActivityLogOptions {
  readonly store: ActivityStore
  readonly clock: Clock
  readonly log: Logger
  /** Asked at every use, so that a changed `[activity]` table takes effect at once. */
  readonly settings: () => ActivitySettings
  /** Takes the values of secrets out of a text. */
  readonly clean?: CleanText
}

/** What the kernel does with the log besides. */
export interface OwnedActivityLog extends ActivityLog {
  /**
   * Writes the row a moment later, together with its neighbours, and before any row that is recorded meanwhile. For what
   * comes in bursts and is lost without harm when the process dies in that moment.
   */
  recordSoon (row: NewActivity): void
  /** Removes rows that the settings of this moment no longer keep. */
  prune (): void
  /** Writes what waits and ends every `follow`. */
  close (): void
}

/** Rows between two prunings: the table may be this much longer than `max_rows`. */
const PRUNE_EVERY = 200
const DAY_MS = 24 * 60 * 60 * 1000
/** How long, and how many, rows of `recordSoon` wait. */
const SOON_MS = 200
const MOST_WAITING = 200
/** Of a row that is written before the work. */
const BEGUN = 'started; its result has a row of its own'
/** Rows that a follower reads at a time. */
const PAGE = 200

/** The durable audit trail. Prunes at the start and every 200 rows. */
export function createActivityLog (options: ActivityLogOptions): OwnedActivityLog {
  const { store, clock, log, settings, clean = text => text } = options
  const closing = new AbortController()
  const changes = new Changes(closing.signal)
  let waiting: Array<Omit<ActivityRow, 'id'>> = []
  let timer: Timer | null = null
  let sincePruned = 0
  let failure: ActivityFailure | null = null
  prune()

  function prune (): void {
    const { enabled, retention_days: days, max_rows: maxRows } = settings()
    if (!enabled) return
    sincePruned = 0
    attempt('old activity rows were not removed', () => store.prune(new Date(clock.now() - days * DAY_MS).toISOString(), maxRows))
  }

  function attempt<T> (complaint: string, work: () => T): T | null {
    try {
      return work()
    } catch (error) {
      log.error({ err: error }, `${complaint}: ${messageOf(error)}`)
      return null
    }
  }

  function write (rows: ReadonlyArray<Omit<ActivityRow, 'id'>>): void {
    timer?.cancel()
    timer = null
    waiting = []
    const named = rows.length === 1 ? `the activity row ${rows[0]!.action} was` : `${rows.length} activity rows were`
    try {
      store.insert(rows)
      failure = null
      changes.wake()
    } catch (error) {
      log.error({ err: error }, `${named} not written: ${messageOf(error)}`)
      const since = failure?.since ?? new Date(clock.now()).toISOString()
      failure = { since, lost: (failure?.lost ?? 0) + rows.length, reason: clean(messageOf(error)) }
    }
    sincePruned += rows.length
    if (sincePruned >= PRUNE_EVERY) prune()
  }

  function record (row: NewActivity): void {
    if (settings().enabled) write([...waiting, complete(row, clock, clean)])
  }

  return {
    epoch: store.epoch,
    get lastId () { return attempt('activity rows cannot be read', () => store.lastId()) ?? 0 },
    get failure () { return failure },
    record,
    prune,
    recordSoon (row) {
      if (!settings().enabled) return
      waiting.push(complete(row, clock, clean))
      if (waiting.length >= MOST_WAITING) write(waiting)
      else timer ??= clock.setTimer(SOON_MS, () => { write(waiting) })
    },
    list: (query = {}) => settings().enabled ? store.list(query) : [],
    page: query => settings().enabled ? store.page(query) : { json: '[]', count: 0, next_before: null },
    follow: (query, signal) => follow({ store, changes, closing: closing.signal }, query, signal),
    close () {
      if (waiting.length > 0) write(waiting)
      closing.abort(new Error('the activity log is closed'))
      changes.wake()
    },
    async audited (row, work) {
      const started = clock.monotonic()
      let learned: ActivityNote = {}
      if (row.outcome === 'pending') record({ ...row, message: row.message ?? BEGUN })
      const finish = (outcome: Partial<NewActivity>): void => {
        record({ ...row, ...learned, ...outcome, duration_ms: Math.round(clock.monotonic() - started) })
      }
      try {
        const result = await work(note => { learned = { ...learned, ...note } })
        finish({ severity: 'ok', outcome: 'ok', error: null })
        return result
      } catch (error) {
        finish({ severity: 'error', outcome: 'error', error: messageOf(error) })
        throw error
      }
    }
  }
}

async function* follow (
  { store, changes, closing }: { readonly store: ActivityStore, readonly changes: Changes, readonly closing: AbortSignal },
  { since, before: _before, limit = 0, ...filter }: ActivityQuery, signal: AbortSignal
): AsyncGenerator<ActivityRow> {
  let last = since ?? store.behind(filter, limit)
  while (!signal.aborted && !closing.aborted) {
    // either signal ends the loop
    if (store.lastId() <= last) await changes.next(signal).catch(() => {})
    // others have their turn between two readings
    else await turn()
    if (signal.aborted || closing.aborted) return
    const { rows, upTo } = store.after(last, filter, PAGE)
    for (const row of rows) {
      if (signal.aborted) return
      yield row
    }
    last = upTo
  }
}

function complete (row: NewActivity, clock: Clock, clean: CleanText): Omit<ActivityRow, 'id'> {
  const before = rowValue(row.before, clean)
  const after = rowValue(row.after, clean, MOST_JSON - before.length)
  return {
    ts: new Date(clock.now()).toISOString(),
    kind: row.kind ?? 'action',
    category: shownName(row.category),
    action: shownName(row.action),
    target: shownName(row.target),
    actor: shownName(row.actor),
    severity: row.severity ?? 'info',
    outcome: row.outcome ?? null,
    message: clean(shownMessage(row.message ?? '')),
    before: before.value,
    after: after.value,
    error: row.error == null ? null : clean(shownMessage(row.error)),
    duration_ms: row.duration_ms ?? null,
    request_id: row.request_id ?? null
  }
}
