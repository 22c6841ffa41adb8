import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { messageOf, type Logger, type RuntimeInfo } from '../contract/index.js'
import { writeFileAtomic } from '../config/files/atomic-file.js'

const hostSchema = z.strictObject({ driver: z.enum(['docker', 'podman', 'process']), endpoint: z.string().nullable() })
const fileSchema = z.strictObject({ version: z.literal(1), used: hostSchema, former: z.array(hostSchema) })

/** What engines of this home run on, or ran on. */
export type EngineHost = z.output<typeof hostSchema>

/**
 * `used`: what the last run used. `former`: what stood beside it, and what earlier runs used: engines of this home may be
 * there.
 */
export interface EngineHosts { readonly used: EngineHost | null, readonly former: readonly EngineHost[] }

const FILE = 'engine-hosts.json'

/** Nothing is known where the file is not there or cannot be read. */
export async function readEngineHosts (stateDir: string): Promise<EngineHosts> {
  const text = await readFile(join(stateDir, FILE), 'utf8').catch(() => '')
  try {
    const { used, former } = fileSchema.parse(JSON.parse(text))
    return { used, former }
  } catch {
    return { used: null, former: [] }
  }
}

/** What stands beside the first is written down before an engine is started there. Never rejects. */
export async function rememberHosts (stateDir: string, hosts: readonly RuntimeInfo[], log: Logger): Promise<void> {
  const { used, former } = await readEngineHosts(stateDir)
  const fresh = hosts.slice(1).filter(isContainerEngine).map(hostOf)
  const unknown = fresh.filter(host => !former.some(other => isSameHost(host, other)))
  if (used !== null && unknown.length > 0) await writeEngineHosts(stateDir, { used, former: [...former, ...unknown] }, log)
}

/** Never rejects: what is not written down is found out anew. */
export async function writeEngineHosts (stateDir: string, hosts: EngineHosts, log: Logger): Promise<void> {
  const before = await readEngineHosts(stateDir)
  if (JSON.stringify(before) === JSON.stringify(hosts)) return
  await writeFileAtomic(join(stateDir, FILE), `${JSON.stringify({ version: 1, ...hosts })}\n`).catch((error: unknown) => {
    log.warn({ file: FILE, err: error }, `the runtimes of the engines could not be recorded: ${messageOf(error)}`)
  })
}

/** What this module remembers; a driver of a plugin keeps its own books. */
export function isContainerEngine ({ driver }: RuntimeInfo): boolean {
  return driver === 'docker' || driver === 'podman'
}

export function hostOf ({ driver, endpoint }: RuntimeInfo): EngineHost {
  return { driver: driver === 'docker' || driver === 'podman' ? driver : 'process', endpoint }
}

export function isSameHost (a: EngineHost, b: EngineHost): boolean {
  return a.endpoint === b.endpoint && (a.driver === 'process') === (b.driver === 'process')
}
