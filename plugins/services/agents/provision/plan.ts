import type { AgentDescriptor } from 'svc-gateway/plugin'
import { orderOf, versionOf } from './packages.js'
import type { AgentRecord } from '../book/record.js'
import type { AgentPhase, InstallForm } from '../ref.js'

/** What an order is to do. */
export interface Plan {
  readonly phases: readonly AgentPhase[]
  /** Default: the form that is there. */
  readonly form?: InstallForm
  readonly skip?: readonly AgentPhase[]
  readonly replaces?: string | null
  /** Default: that of the descriptor. */
  readonly version?: string | undefined
  readonly dryRun?: boolean
}

/**
 * The record as it is before the first phase. Pure.
 * @param before undefined where nothing is there
 * @param at ISO 8601 UTC
 */
export function planned (
  agent: AgentDescriptor, verb: AgentRecord['verb'], plan: Plan, before: AgentRecord | undefined, at: string
): Omit<AgentRecord, 'svc_version' | 'job'> {
  const { phases, skip = [], replaces = null } = plan
  const form = plan.form ?? before!.form
  const asked = versionOf(orderOf(agent, form, plan.version ?? null))
  return {
    version: null,
    environment: null,
    installed_at: null,
    ...before,
    // what is there in another form is nothing to start this one from, or to go back to
    ...before?.form === form ? {} : { version: null, environment: null },
    name: agent.id,
    verb,
    form,
    wanted_version: phases.includes('packages') || before === undefined ? asked : before.wanted_version,
    previous: null,
    replaces,
    completed_at: null,
    problem: null,
    phases: Object.fromEntries(phases.map(phase =>
      [phase, { status: skip.includes(phase) ? 'skipped' as const : 'pending' as const, at, reason: null, details: {} }]))
  }
}
