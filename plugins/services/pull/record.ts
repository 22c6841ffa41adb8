import { modelCapabilities, type Job } from 'svc-gateway/plugin'
import { z } from 'zod'
import { engineRecordSchema, engineSnapshot, type EngineRecord } from './engine/engine-record.js'
import type { PullSnapshot } from './ref.js'

/** Kind of the rows in the job store. */
export const JOB_KIND = 'model-pull'

const fileSchema = z.looseObject({
  hf_filename: z.string(),
  kind: z.enum(['model', 'mmproj']),
  dest: z.string(),
  /** Folder and name of the part file. */
  staging: z.string(),
  key: z.string(),
  size: z.number(),
  sha256: z.string().nullable(),
  gitSha1: z.string().nullable(),
  /** Of what lies on the disk, once checked. */
  checked: z.string().nullable()
})

/** What a job keeps of a pull from the hub to be taken up again, by a later release too. */
export const hubRecordSchema = z.looseObject({
  repo: z.string(),
  commit: z.string(),
  files: z.array(fileSchema).min(1),
  capabilities: z.array(z.enum(modelCapabilities)).catch([]),
  tags: z.array(z.string()).catch([]),
  name: z.string().catch(''),
  license: z.string().catch(''),
  origin: z.enum(['add-by-hf', 'registry', 'curated']).catch('registry'),
  /** Folder to write `meta.json` into, for the grouped layout. */
  meta: z.looseObject({ folder: z.string(), capability: z.string() }).nullable().catch(null),
  errorCode: z.string().nullable().catch(null),
  /** As of the last write. */
  bytes: z.number().catch(0)
})

export type HubRecord = z.output<typeof hubRecordSchema>
export type RecordFile = HubRecord['files'][number]
export type PullRecord = HubRecord | EngineRecord

const recordSchema = z.union([hubRecordSchema, engineRecordSchema])

export function isEngineRecord (record: PullRecord): record is EngineRecord {
  return 'engine' in record
}

export function recordOf (job: Job): PullRecord | null {
  return recordSchema.safeParse(job.data).data ?? null
}

/** What only the running pull knows. */
export interface Live {
  readonly done: readonly number[]
  readonly speedBps: number
  readonly message: string
}

/** As the row has it. Pure. */
export function snapshotOf (job: Job, record: PullRecord): PullSnapshot {
  return isEngineRecord(record) ? engineSnapshot(job, record, null) : hubSnapshot(job, record, null)
}

/** Pure. Without `live` as the row has it. */
export function hubSnapshot (job: Job, record: HubRecord, live: Live | null): PullSnapshot {
  const total = record.files.reduce((sum, file) => sum + file.size, 0)
  const isDone = job.state === 'completed'
  const downloaded = isDone ? total : live === null ? record.bytes : live.done.reduce((sum, bytes) => sum + bytes, 0)
  const [first] = record.files
  const speed = job.state === 'running' ? live?.speedBps ?? 0 : 0
  return {
    id: job.id,
    model_id: job.target,
    state: job.state,
    source: 'hf',
    hf_repo: record.repo,
    hf_file: first!.hf_filename,
    revision: record.commit,
    bytes_downloaded: downloaded,
    bytes_total: total,
    speed_bps: speed,
    eta_s: speed > 0 && job.state === 'running' ? Math.ceil((total - downloaded) / speed) : null,
    message: live?.message ?? '',
    started_at: Date.parse(job.created_at) / 1000,
    finished_at: job.finished_at === null ? null : Date.parse(job.finished_at) / 1000,
    error: job.error,
    error_code: record.errorCode,
    sha256: isDone && first!.sha256 !== null ? first!.checked : null,
    path: isDone ? first!.dest : null,
    files: record.files.map((file, i) => ({
      hf_filename: file.hf_filename,
      kind: file.kind,
      dest: file.dest,
      bytes_total: file.size,
      bytes_done: isDone ? file.size : live?.done[i] ?? 0,
      sha256: file.sha256 === null ? null : file.checked,
      expected_sha256: file.sha256
    }))
  }
}
