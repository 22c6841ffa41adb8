import type { AgentDescriptor } from 'svc-gateway/plugin'
import { isUnderWay, type AgentRecord } from './record.js'
import type { AgentStatus } from '../ref.js'

/** What is known of an agent besides its record. */
export interface AgentAround {
  /** Undefined while the plugin that describes it is not active. */
  readonly agent: AgentDescriptor | undefined
  readonly dataDir: string
  /** Its file in `agents/`. */
  readonly configPath: string
  readonly programOf: (agent: AgentDescriptor) => string | null
  /** Whether its server runs. */
  readonly isUp: boolean
  /** Whether there is work on it that is not over. */
  readonly isWorkedOn: boolean
}

const CUT_OFF = 'the work on it was interrupted, and its result could not be saved: see the log of the gateway'

/** Pure. */
export function shownStatus (record: AgentRecord, around: AgentAround): AgentStatus {
  const { agent, dataDir, configPath, programOf, isUp, isWorkedOn } = around
  const isCutOff = isUnderWay(record) && !isWorkedOn
  return {
    name: record.name,
    status: stateOf(record, isCutOff),
    job: record.job,
    form: record.form,
    wanted_version: record.wanted_version,
    version: record.version,
    installed_at: record.installed_at,
    completed_at: record.completed_at,
    problem: agent === undefined ? 'the plugin that describes it is not active' : record.problem ?? (isCutOff ? CUT_OFF : null),
    phases: record.phases,
    data_dir: dataDir,
    config_path: configPath,
    program: agent === undefined ? null : programOf(agent),
    unit_active: agent?.server === undefined ? null : isUp
  }
}

function stateOf (record: AgentRecord, isCutOff: boolean): AgentStatus['status'] {
  const { verb, problem, installed_at: installedAt } = record
  if (verb === 'uninstall') return 'removing'
  if (isCutOff) return 'broken'
  if (isUnderWay(record)) return 'installing'
  // an upgrade that failed has left what was there
  return installedAt !== null && (problem === null || verb === 'upgrade') ? 'installed' : 'broken'
}
