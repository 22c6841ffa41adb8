import type { Background, Core } from '../core.js'
import { operationsOf } from '../operations/operations.js'
import type { BankRow } from '../store/bank-table.js'
import { cronOf, lastFire } from './cron.js'
import { MentalModelTable, type MentalModel } from './mental-model-table.js'
import { triggerOf } from './model-view.js'
import { isStale } from './staleness.js'
import { submitRefresh } from './submit-refresh.js'

const LOOK_MS = 60_000

/** How a mental model is due to be made anew by itself; null if it is not. */
export type Due = 'by mode' | 'full' | null

/**
 * Schedules count from the last refresh, so that one that fell due while nothing ran is caught up with. A full one is due only
 * where another refresh ran since the last full one, and nothing is due while the last refresh failed. Pure.
 */
export function dueOf (model: MentalModel, consolidatedAt: number | null, now: number): Due {
  const { lastRefreshedAt: last, lastFullRefreshedAt: lastFull, lastRefreshFailedAt: failed } = model
  if ((failed !== null && failed > (last ?? 0)) || isTooSoon(model, now)) return null
  const { refresh_cron: cron, full_refresh_cron: fullCron, refresh_after_consolidation: follows } = triggerOf(model.settings)
  if (hasFired(fullCron, lastFull, now) && (lastFull === null || last === null || last > lastFull)) return 'full'
  // a consolidation that came too soon after the last refresh
  const isLeft = follows === true && consolidatedAt !== null && last !== null && consolidatedAt > last
  return isLeft || hasFired(cron, last, now) ? 'by mode' : null
}

/** Whether a refresh that is not asked for has to wait. Pure. */
export function isTooSoon ({ settings, lastRefreshedAt }: MentalModel, now: number): boolean {
  const { min_refresh_interval_seconds: seconds } = triggerOf(settings)
  return typeof seconds === 'number' && lastRefreshedAt !== null && lastRefreshedAt + seconds * 1000 > now
}

function hasFired (text: unknown, since: number | null, now: number): boolean {
  const cron = typeof text === 'string' ? cronOf(text) : null
  const fired = cron === null ? null : lastFire(cron, now)
  return fired !== null && (since === null || fired > since)
}

/** Has the mental models made anew whose time has come and whose memories have changed. */
function refreshDue (core: Core): void {
  // without a model the refresh fails, and a failed one is not tried again by itself
  if (core.outside.abilities.chat.model === null) return
  const { store } = core
  const banks = store.all<BankRow>(`SELECT * FROM banks WHERE bank_id NOT LIKE '/%' AND seq IN (SELECT bank FROM mental_models
    WHERE settings LIKE '%refresh_cron":"%' OR settings LIKE '%refresh_after_consolidation":true%')`, [])
  for (const bank of banks) {
    for (const model of new MentalModelTable(core).each(bank.seq)) {
      const due = dueOf(model, bank.last_consolidated_at, core.now())
      if (due === null || (due === 'by mode' && !isStale(core, bank.seq, model))) continue
      if (operationsOf(core).table.waiting(bank.bank_id, 'refresh_mental_model', model.id) !== null) continue
      submitRefresh(core, bank.bank_id, model, due === 'full')
    }
  }
}

export const startSchedules: Background = core => {
  const look = (): void => {
    try {
      refreshDue(core)
    } catch (error) {
      core.log('warn', 'mental models that are due could not be refreshed', { error: (error as Error).message })
    }
  }
  look()
  core.outside.onAbilities(look)
  const timer = setInterval(look, LOOK_MS)
  timer.unref()
  core.closing.addEventListener('abort', () => clearInterval(timer), { once: true })
}
