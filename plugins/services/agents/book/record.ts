import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { agentPhases, installForms, phaseStates, type AgentPhase } from '../ref.js'

const phaseSchema = z.object({
  status: z.enum(phaseStates),
  /** ISO 8601 UTC. */
  at: z.string(),
  reason: z.string().nullable(),
  details: z.record(z.string(), z.unknown())
})
export type PhaseRecord = z.output<typeof phaseSchema>

/** `provision.json` of an agent: what is there of it, and how far the work on it is. */
const recordSchema = z.object({
  name: z.string(),
  verb: z.enum(['install', 'upgrade', 'reprovision', 'bootstrap', 'uninstall']),
  job: z.string().nullable(),
  form: z.enum(installForms),
  wanted_version: z.string().nullable(),
  /** That was found in it after the installation. */
  version: z.string().nullable(),
  /** Folder of its packages, or its image. */
  environment: z.string().nullable(),
  /** What it goes back to when the new version does not work. */
  previous: z.object({ environment: z.string(), version: z.string().nullable() }).nullable(),
  /** The agent in whose place it comes. */
  replaces: z.string().nullable(),
  installed_at: z.string().nullable(),
  completed_at: z.string().nullable(),
  problem: z.string().nullable(),
  svc_version: z.string(),
  phases: z.partialRecord(z.enum(agentPhases), phaseSchema)
})
export type AgentRecord = z.output<typeof recordSchema>

export const RECORD = 'provision.json'

/** Null for a folder without one. What cannot be read was written by another release, or by hand. */
export async function readRecord (folder: string): Promise<AgentRecord | 'unreadable' | null> {
  try {
    return recordSchema.parse(JSON.parse(await readFile(join(folder, RECORD), 'utf8')))
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? null : 'unreadable'
  }
}

/** Whole or not at all. */
export async function writeRecord (folder: string, record: AgentRecord): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await writeFile(join(folder, `${RECORD}.new`), `${JSON.stringify(record, null, 2)}\n`, { mode: 0o600, flush: true })
  await rename(join(folder, `${RECORD}.new`), join(folder, RECORD))
}

export async function agentFolders (root: string): Promise<readonly string[]> {
  const entries = await readdir(root, { withFileTypes: true }).catch(() => [])
  return entries.filter(entry => entry.isDirectory()).map(({ name }) => name)
}

/** The first phase that is planned and not over; null when all are. */
export function nextPhase ({ phases }: Pick<AgentRecord, 'phases'>): AgentPhase | null {
  return agentPhases.find(phase => phases[phase]?.status === 'pending' || phases[phase]?.status === 'running') ?? null
}

/** Whether work is under way, or was cut off. What has failed goes back to what was there before, and is over then. */
export function isUnderWay (record: AgentRecord): boolean {
  return record.verb === 'uninstall' || record.completed_at === null
}
