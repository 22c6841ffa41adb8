import type { Boot } from '../start/boot.js'
import { isAlive, newRecord, waitingFor, type Candidate, type PluginRecord, type Waiting } from '../record/record.js'
import { bringsRuntime, isCurrent, isRelational, planReload, type ReloadPlan, type ReloadWish } from './reload-plan.js'
import type { Services } from '../mount/services.js'

export interface ReloadJudgement {
  readonly plan: ReloadPlan
  /** What is new and went through the steps, in dependency order. */
  readonly ordered: readonly PluginRecord[]
  /** What is new, also what fell before there was an order. */
  readonly fresh: readonly PluginRecord[]
  /** As they are when the plan is carried out. */
  readonly services: Services
}

/**
 * Takes what a reload would bring through the steps beside what runs, which goes on meanwhile. A version that falls does
 * not replace the one that runs: the plan is made again without it. Notes at every plugin that stays what waits for it.
 */
export async function judgeReload (
  boot: Boot, records: readonly PluginRecord[], wish: Omit<ReloadWish, 'held'>, services: Services
): Promise<ReloadJudgement> {
  const held = new Map<PluginRecord, PluginRecord>()
  const fallen = new Map<Candidate, PluginRecord>()
  for (;;) {
    const plan = planReload(records, { ...wish, held: new Set(held.keys()) })
    const draft = services.without(plan.leaving.flatMap(({ stage }) => [...stage?.provided.keys() ?? []]))
    const fresh = plan.fresh.map(candidate => fallen.get(candidate) ?? newRecord(candidate))
    const ordered = await boot.run(fresh.filter(isAlive), plan.staying, draft)
    const refused = plan.leaving.filter(record => record.state === 'active' && !held.has(record) && isRefused(record, fresh))
    if (refused.length === 0) {
      noteWaiting(plan, wish, held)
      return { plan, ordered, fresh, services: draft }
    }
    for (const record of refused) held.set(record, fresh.find(({ candidate }) => candidate.source === record.candidate.source)!)
    // what fell for its own sake would only fall again
    for (const record of fresh) {
      if (record.state === 'failed' && !isRelational(record.code)) fallen.set(record.candidate, record)
    }
  }
}

function isRefused (record: PluginRecord, fresh: readonly PluginRecord[]): boolean {
  const next = fresh.find(({ candidate }) => candidate.source === record.candidate.source)
  return next !== undefined && (next.state === 'failed' || next.state === 'skipped')
}

function noteWaiting (
  { staying, late }: ReloadPlan, wish: Omit<ReloadWish, 'held'>, held: ReadonlyMap<PluginRecord, PluginRecord>
): void {
  for (const record of staying) {
    const found = wish.wanted.find(({ source }) => source === record.candidate.source)
    if (found === undefined || isCurrent(record, found, wish)) record.waiting = null
    else if (late.has(record)) record.waiting = waitingForRestart(record, found, wish.tableOf(record))
    else if (held.has(record)) record.waiting = waitingFor(held.get(record)!)
    else {
      const table = wish.tableOf(record)
      const isTold = record.waiting !== null && record.waiting.revision === found.revision && record.waiting.table === table
      if (!isTold) record.waiting = waitingForUsers(found, table, [...held.values()])
    }
  }
}

/** Of a version that stands, while plugins which use its services do not stand with it. */
function waitingForUsers (found: Candidate, table: string, fallen: readonly PluginRecord[]): Waiting {
  const users = fallen.map(({ name, message }) => `plugin '${name}', which uses its services, does not start with it: ${message ?? ''}`)
  const code = fallen[0]?.code ?? 'plugin.dependency_failed'
  return { revision: found.revision, table, report: { version: found.version, state: 'failed', phase: fallen[0]?.phase ?? null, code, message: users.join('; ') } }
}

function waitingForRestart (record: PluginRecord, { revision, version }: Candidate, table: string): Waiting {
  const message = bringsRuntime(record)
    ? 'it provides a runtime that engines run on; restart the gateway to replace it'
    : 'its package requires a restart of the gateway to replace it'
  return { revision, table, report: { version, state: 'restart', phase: null, code: null, message } }
}
