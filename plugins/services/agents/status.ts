import type { AgentDescriptor } from 'svc-gateway/plugin'
import { isUnderWay, type AgentRecord } from './record.js'
import type { AgentStatus } from './ref.js'

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
}

/** Pure. */
export function shownStatus (record: AgentRecord, { agent, dataDir, configPath, programOf, isUp }: AgentAround): AgentStatus {
  return {
    name: record.name,
    status: stateOf(record),
    job: record.job,
    form: record.form,
    wanted_version: record.wanted_version,
    version: record.version,
    installed_at: record.installed_at,
    completed_at: record.completed_at,
    problem: agent === undefined ? 'the plugin that describes it is not active' : record.problem,
    phases: record.phases,
    data_dir: dataDir,
    config_path: configPath,
    program: agent === undefined ? null : programOf(agent),
    unit_active: agent?.server === undefined ? null : isUp
  }
}

function stateOf (record: AgentRecord): AgentStatus['status'] {
  const { verb, problem, installed_at: installedAt } = record
  if (verb === 'uninstall') return 'removing'
  if (isUnderWay(record)) return 'installing'
  // an upgrade that failed has left what was there
  return installedAt !== null && (problem === null || verb === 'upgrade') ? 'installed' : 'broken'
}
