import { join } from 'node:path'
import { messageOf, type Clock, type JobPatch, type JobStore, type Logger } from 'svc-gateway/plugin'
import { removeAll } from './data.js'
import { agentError } from '../errors.js'
import type { KnownAgents } from '../known-agents.js'
import { agentFolders, isUnderWay, readRecord, writeRecord, type AgentRecord } from './record.js'
import type { AgentPhase } from '../ref.js'

export interface AgentBookDeps {
  readonly jobs: JobStore
  readonly clock: Clock
  readonly log: Logger
  readonly known: KnownAgents
  /** Folder that has one for each agent. */
  readonly root: () => string
}

const JOB_KIND = 'agent'
const KEPT_JOBS = 50

/** The records of agents that the gateway brought, on disk and in memory, with the jobs that tell of the work on them. */
export class AgentBook {
  readonly #deps: AgentBookDeps
  readonly #records = new Map<string, AgentRecord>()
  readonly #listeners = new Set<() => void>()

  constructor (deps: AgentBookDeps) {
    this.#deps = deps
  }

  /** A folder without a record is what an installation left that never began: it is taken away. */
  async load (): Promise<void> {
    const { root, log } = this.#deps
    for (const id of await agentFolders(root())) {
      const folder = join(root(), id)
      const record = await readRecord(folder)
      if (record === null) {
        const left = await removeAll(folder)
        if (left !== null) log.warn({ agent: id, places: left.places }, `the remains of an installation of ${id} cannot be deleted: ${messageOf(left.first)}`)
      } else if (record === 'unreadable') log.warn({ agent: id }, `the record of ${id} in ${folder} cannot be read: \`svc agent install ${id}\` recreates it, with the existing data`)
      else this.#records.set(id, record)
    }
    this.#endLost()
    this.#changed()
  }

  all (): readonly AgentRecord[] {
    return [...this.#records.values()]
  }

  find (id: string): AgentRecord | undefined {
    return this.#records.get(id)
  }

  /** Throws `agent.unknown`, `agent.not_installed`. */
  get (id: string): AgentRecord {
    const record = this.#records.get(id)
    if (record !== undefined) return record
    const { install = {} } = this.#deps.known.get(id)
    const command = Object.keys(install).length > 0 ? `install it with \`svc agent install ${id}\`` : `the gateway cannot install it, \`svc agent run ${id}\` runs your own installation`
    throw agentError('agent.not_installed', `${id} was not installed by the gateway: ${command}`, { details: { agent: id } })
  }

  /** Resolves when it is on the disk. */
  async write (record: AgentRecord): Promise<void> {
    await writeRecord(join(this.#deps.root(), record.name), record)
    this.#records.set(record.name, record)
    this.#changed()
  }

  async change (id: string, change: Partial<AgentRecord>): Promise<void> {
    await this.write({ ...this.get(id), ...change })
  }

  async note (
    id: string, phase: AgentPhase, status: 'running' | 'done' | 'failed',
    { reason = null, details = {}, change = {} }: {
      readonly reason?: string | null
      readonly details?: Readonly<Record<string, unknown>>
      readonly change?: Partial<AgentRecord>
    } = {}
  ): Promise<void> {
    const told = { status, at: this.now(), reason, details: { ...details } }
    await this.change(id, { ...change, phases: { ...this.get(id).phases, [phase]: told } })
  }

  /** After its folder is gone. */
  forget (id: string): void {
    this.#records.delete(id)
    this.#changed()
  }

  readonly follow = (listener: () => void): () => void => {
    this.#listeners.add(listener)
    return () => { this.#listeners.delete(listener) }
  }

  /** With a job of its own. Resolves when both are on the disk; where one cannot be, nothing has begun. */
  async begin (record: Omit<AgentRecord, 'job'>): Promise<void> {
    const { name, verb } = record
    const before = this.#records.get(name)?.job ?? null
    const job = this.#deps.jobs.create({ kind: JOB_KIND, target: name, state: 'running', message: verb }).id
    try {
      await this.write({ ...record, job })
    } catch (error) {
      this.#patchJob(name, job, { state: 'failed', error: messageOf(error) })
      throw error
    }
    // that of work whose end could not be written
    this.#patchJob(name, before, { state: 'cancelled' })
  }

  /** The record counts; a row that cannot be written is no reason to stop. */
  tellJob (id: string, patch: JobPatch): void {
    this.#patchJob(id, this.#records.get(id)?.job ?? null, patch)
  }

  tellEnd (id: string): void {
    const { problem } = this.get(id)
    this.tellJob(id, problem === null ? { state: 'completed', progress: 1, message: '' } : { state: 'failed', error: problem })
  }

  #patchJob (id: string, job: string | null, patch: JobPatch): void {
    const { jobs, log } = this.#deps
    try {
      if (job === null || jobs.get(job)?.finished_at !== null) return
      jobs.update(job, patch)
      jobs.prune(JOB_KIND, KEPT_JOBS)
    } catch (error) {
      log.warn({ agent: id }, `the job of ${id} cannot be saved: ${messageOf(error)}`)
    }
  }

  /** A row whose end could not be written then, as on a full disk, would say for good that the work is under way. */
  #endLost (): void {
    const { jobs, log } = this.#deps
    for (const record of this.all()) if (!isUnderWay(record)) this.tellEnd(record.name)
    const goesOn = new Set(this.all().map(({ job }) => job))
    try {
      for (const { id, target } of jobs.list({ kind: JOB_KIND, unfinished: true })) {
        if (!goesOn.has(id)) this.#patchJob(target ?? '', id, { state: 'failed', error: 'the gateway stopped before it started' })
      }
    } catch (error) {
      log.warn(`jobs of agents cannot be read: ${messageOf(error)}`)
    }
  }

  #changed (): void {
    for (const listener of this.#listeners) listener()
  }

  /** ISO 8601 UTC. */
  now (): string {
    return new Date(this.#deps.clock.now()).toISOString()
  }
}
