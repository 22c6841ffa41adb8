import { randomBytes } from 'node:crypto'
import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from 'svc-gateway/plugin'
import { writeWhole } from './launcher/switch-file.js'

/** `applied` and `failed` are final. `prepared` waits for the gateway to start again. */
export const updateStates = ['queued', 'running', 'prepared', 'applied', 'failed'] as const
export const updatePhases = ['checking', 'downloading', 'verifying', 'unpacking', 'trying', 'restarting', 'confirming', 'done'] as const
export const updateKinds = ['update', 'rollback'] as const

export interface UpdateJob {
  /** 12 hex digits. */
  readonly id: string
  readonly kind: typeof updateKinds[number]
  readonly state: typeof updateStates[number]
  readonly phase: typeof updatePhases[number]
  readonly channel: string
  /** What was asked for; null is the newest. */
  readonly version: string | null
  readonly resolved_version: string | null
  /** 0 to 1, of the download. */
  readonly progress: number | null
  readonly notes: readonly string[]
  /** Whether the gateway was started again with the new release. */
  readonly restarted: boolean
  /** Someone has to start it again: nothing else does here. */
  readonly restart_required: boolean
  readonly error: string | null
  readonly error_code: string | null
  readonly created_at: string
  readonly updated_at: string
}

export type NewUpdate = Pick<UpdateJob, 'kind' | 'channel' | 'version'>
export type UpdatePatch = Partial<Omit<UpdateJob, 'id' | 'kind' | 'created_at' | 'updated_at'>>

const KEPT = 50
const FILE = /^([0-9a-f]{12})\.json$/

/** Jobs as files, so that whatever release runs next can read them: `update-jobs/<id>.json` below the state root. */
export class JobFiles {
  readonly #folder: string
  readonly #clock: Clock
  readonly #jobs = new Map<string, UpdateJob>()

  constructor (folder: string, clock: Clock) {
    this.#folder = folder
    this.#clock = clock
  }

  /** Reads what earlier runs left, once. A file that is broken counts as none. */
  async open (): Promise<void> {
    for (const name of await readdir(this.#folder).catch(() => [])) {
      const [, id] = FILE.exec(name) ?? []
      if (id === undefined) continue
      const job = await readFile(join(this.#folder, name), 'utf8').then(text => JSON.parse(text) as UpdateJob).catch(() => null)
      if (job?.id === id) this.#jobs.set(id, job)
    }
  }

  get (id: string): UpdateJob | undefined { return this.#jobs.get(id) }

  /** Newest first. */
  list (): readonly UpdateJob[] {
    return [...this.#jobs.values()].toSorted((a, b) => b.created_at.localeCompare(a.created_at))
  }

  async create (job: NewUpdate): Promise<UpdateJob> {
    const at = this.#now()
    const made: UpdateJob = {
      ...job, id: randomBytes(6).toString('hex'), state: 'queued', phase: 'checking', resolved_version: null, progress: null, notes: [],
      restarted: false, restart_required: false, error: null, error_code: null, created_at: at, updated_at: at
    }
    await mkdir(this.#folder, { recursive: true })
    await this.#write(made)
    for (const old of this.list().slice(KEPT)) {
      this.#jobs.delete(old.id)
      await rm(join(this.#folder, `${old.id}.json`), { force: true })
    }
    return made
  }

  async update (id: string, patch: UpdatePatch): Promise<UpdateJob> {
    const next = { ...this.#jobs.get(id)!, ...patch, updated_at: this.#now() }
    await this.#write(next)
    return next
  }

  /** How far a download is: told, and not written. */
  progress (id: string, progress: number | null): void {
    this.#jobs.set(id, { ...this.#jobs.get(id)!, progress })
  }

  #now (): string { return new Date(this.#clock.now()).toISOString() }

  async #write (job: UpdateJob): Promise<void> {
    await writeWhole(join(this.#folder, `${job.id}.json`), `${JSON.stringify(job, null, 2)}\n`)
    this.#jobs.set(job.id, job)
  }
}
