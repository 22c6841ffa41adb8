import type { Clock, Logger } from '../../contract/index.js'
import { ENGINE_ID_VARIABLE } from './process-env.js'
import type { ProcessRecord, RecordStore } from './process-record.js'
import { engineProcesses, type ProcessEntry, type ProcessTable } from './process-table.js'
import { pollUntil } from '../../async/waiting.js'

const GONE_WITHIN_MS = 10_000

export interface RecoveryDeps {
  readonly store: RecordStore
  readonly table: ProcessTable
  readonly clock: Clock
  readonly log: Logger
}

/**
 * What an earlier gateway left, made true: `running` records have a living process, `starting` ones are decided
 * one way or the other, and no process of ours lives without a record. Run before the driver takes calls.
 */
export async function recoverRecords (deps: RecoveryDeps): Promise<readonly ProcessRecord[]> {
  const records = await Promise.all((await deps.store.ids()).map(id => recover(deps, id)))
  return records.filter(record => record !== null)
}

async function recover (deps: RecoveryDeps, id: string): Promise<ProcessRecord | null> {
  const { store, table } = deps
  const record = await store.read(id)
  if (record === null) {
    deps.log.warn({ engine: id }, 'the record of an engine is missing or damaged: stopping its processes and removing the rest')
    await killLeftovers(deps, id, null)
    await store.remove(id)
    return null
  }
  if (record.state === 'starting') {
    const leader = await findSpawned(deps, id)
    return update(store, leader === null ? { ...record, state: 'exited' } : { ...record, state: 'running', leader })
  }
  if (record.state !== 'running') return record
  const { leader } = record
  if (leader !== null && (await table.find(leader.pid))?.startId === leader.startId) return record
  await killLeftovers(deps, id, leader)
  return update(store, { ...record, state: 'exited', exitCode: null })
}

/**
 * The child of a gateway that was killed between spawn and record: recognised by its token or, in the instant
 * before it runs its program, by the output file that it inherited.
 */
async function findSpawned ({ store, table }: RecoveryDeps, id: string): Promise<ProcessEntry | null> {
  let found = await engineProcesses(table, null, tokenOf(id))
  if (found.length === 0) {
    const holders = await table.withOpen(await store.realLogFile(id))
    found = (await table.all()).filter(entry => holders.has(entry.pid) && entry.pid !== process.pid)
  }
  const leader = found.find(entry => entry.pid === entry.group) ?? found[0]
  // it makes a group of its own before anything else, if not yet then in a moment
  return leader === undefined ? null : { ...leader, group: leader.pid }
}

async function killLeftovers ({ table, clock, log }: RecoveryDeps, id: string, leader: ProcessEntry | null): Promise<void> {
  const gone = await pollUntil(clock, 20, GONE_WITHIN_MS, async () => {
    const left = await engineProcesses(table, leader, tokenOf(id))
    for (const { pid } of left) {
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        // gone meanwhile, or not ours to end: the next look decides
      }
    }
    return left.length === 0
  })
  if (!gone) log.warn({ engine: id }, 'processes of an engine that ended cannot be killed; check them with ps: a driver may hang')
}

async function update (store: RecordStore, record: ProcessRecord): Promise<ProcessRecord> {
  await store.write(record)
  return record
}

function tokenOf (id: string): string {
  return `${ENGINE_ID_VARIABLE}=${id}`
}
