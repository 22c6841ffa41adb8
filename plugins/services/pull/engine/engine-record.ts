import { posix } from 'node:path'
import type { Job } from 'svc-gateway/plugin'
import { z } from 'zod'
import type { PullSnapshot } from '../ref.js'

const fileSchema = z.looseObject({ path: z.string(), sizeBytes: z.number(), doneBytes: z.number() })

/** What a job keeps of a model that an engine fetches by itself. */
export const engineRecordSchema = z.looseObject({
  /** Provider whose program it is. */
  engine: z.string(),
  source: z.string(),
  /** The model in the engine's spelling. */
  tag: z.string(),
  store: z.string(),
  /** Of the model, below the store; null until the program tells. */
  folder: z.string().nullable().catch(null),
  /** Bytes, as the engine's makers count; 0 if unknown. */
  size: z.number().catch(0),
  /** What the program says it fetches; empty before. */
  files: z.array(fileSchema).catch([]),
  errorCode: z.string().nullable().catch(null),
  bytes: z.number().catch(0)
})

export type EngineRecord = z.output<typeof engineRecordSchema>

/** What only the running pull knows. */
export interface EngineLive {
  readonly speedBps: number
  readonly message: string
}

/** Pure. Once the program has told what it fetches, that counts. */
export function totalOf ({ files, size }: EngineRecord): number {
  return files.length === 0 ? size : files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
}

/** Pure. */
export function doneOf ({ files, bytes }: EngineRecord): number {
  return files.length === 0 ? bytes : files.reduce((sum, { doneBytes }) => sum + doneBytes, 0)
}

/** Pure. Without `live` as the row has it. */
export function engineSnapshot (job: Job, record: EngineRecord, live: EngineLive | null): PullSnapshot {
  const total = totalOf(record)
  const isDone = job.state === 'completed'
  const downloaded = isDone ? total : doneOf(record)
  const speed = job.state === 'running' ? live?.speedBps ?? 0 : 0
  return {
    id: job.id,
    model_id: job.target,
    state: job.state,
    source: record.source,
    hf_repo: '',
    hf_file: '',
    revision: '',
    bytes_downloaded: downloaded,
    bytes_total: total,
    speed_bps: speed,
    eta_s: speed > 0 ? Math.ceil((total - downloaded) / speed) : null,
    message: job.state === 'running' ? live?.message ?? '' : '',
    started_at: Date.parse(job.created_at) / 1000,
    finished_at: job.finished_at === null ? null : Date.parse(job.finished_at) / 1000,
    error: job.error,
    error_code: record.errorCode,
    sha256: null,
    path: isDone && record.folder !== null ? posix.join(record.store, record.folder) : null,
    files: record.files.map(({ path, sizeBytes, doneBytes }) => ({
      hf_filename: posix.basename(path),
      kind: 'model',
      dest: posix.join(record.store, path),
      bytes_total: sizeBytes,
      bytes_done: isDone ? sizeBytes : doneBytes,
      sha256: null,
      expected_sha256: null
    }))
  }
}
