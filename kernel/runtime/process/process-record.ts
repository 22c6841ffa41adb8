import { mkdir, open, readdir, readFile, realpath, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import type { EngineSpec, ProcessForm } from '../../contract/provider/engine-runtime.js'
import type { ProcessEntry } from './process-table.js'

const strings = z.record(z.string(), z.string())

const specSchema = z.object({
  name: z.string(),
  labels: strings,
  env: strings,
  port: z.int().nullable(),
  ports: z.record(z.string(), z.int()).exactOptional(),
  form: z.object({
    kind: z.literal('process'),
    command: z.string(),
    args: z.array(z.string()),
    workingDir: z.string().nullable(),
    bindHost: z.string(),
    label: z.string(),
    piped: z.literal(true).exactOptional()
  })
})

/** `record.json` of one engine. `starting`: a spawn may or may not have happened; the token decides. */
const recordSchema = z.object({
  version: z.literal(1),
  id: z.string(),
  spec: specSchema,
  state: z.enum(['created', 'starting', 'running', 'exited']),
  /** First process and group leader; null before it is known. */
  leader: z.object({ pid: z.int(), group: z.int(), startId: z.string() }).nullable(),
  startedAt: z.number().nullable(),
  exitCode: z.int().nullable()
})

export type ProcessSpec = EngineSpec & { readonly form: ProcessForm }

export interface ProcessRecord {
  readonly version: 1
  readonly id: string
  readonly spec: ProcessSpec
  readonly state: 'created' | 'starting' | 'running' | 'exited'
  readonly leader: ProcessEntry | null
  readonly startedAt: number | null
  readonly exitCode: number | null
}

/** Ids are made here and used as folder names, so anything else is no engine of ours. */
export const ENGINE_ID_PATTERN = /^proc-[0-9a-f]{24}$/

export interface RecordStore {
  /** Ids of all folders, readable or not. */
  ids (): Promise<readonly string[]>
  /** Null when the folder has no readable record. */
  read (id: string): Promise<ProcessRecord | null>
  /** Whole or not at all, also when the gateway is killed meanwhile. Makes the folder for a `created` record only. */
  write (record: ProcessRecord): Promise<void>
  remove (id: string): Promise<void>
  folder (id: string): string
  logFile (id: string): string
  /** The same with links resolved, as the operating system shows open files. */
  realLogFile (id: string): Promise<string>
}

/** Records may hold secrets of `[server] env`: folders 0700, files 0600. */
export function createRecordStore (root: string): RecordStore {
  const folder = (id: string): string => join(root, id)
  const recordFile = (id: string): string => join(folder(id), 'record.json')
  return {
    folder,
    logFile: id => join(folder(id), 'output.log'),
    realLogFile: async id => join(await realpath(folder(id)), 'output.log'),
    async ids () {
      await mkdir(root, { recursive: true, mode: 0o700 })
      return (await readdir(root)).filter(name => ENGINE_ID_PATTERN.test(name))
    },
    async read (id) {
      try {
        const record = recordSchema.parse(JSON.parse(await readFile(recordFile(id), 'utf8')))
        return record.id === id ? record : null
      } catch {
        return null // absent or damaged: the caller decides what becomes of the folder
      }
    },
    async write (record) {
      if (record.state === 'created') await mkdir(folder(record.id), { recursive: true, mode: 0o700 })
      const temporary = `${recordFile(record.id)}.tmp`
      const file = await open(temporary, 'w', 0o600)
      try {
        await file.writeFile(JSON.stringify(record, null, 2))
        await file.datasync()
      } finally {
        await file.close()
      }
      await rename(temporary, recordFile(record.id))
    },
    remove: id => rm(folder(id), { recursive: true, force: true })
  }
}
