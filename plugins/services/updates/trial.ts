import { join } from 'node:path'
import { z } from 'zod'
import { updateError } from './errors.js'
import { runTrialProcess } from './trial-process.js'

/** What `svc doctor upgrade --json` prints: whether a release can take over a home, found out on a copy of it. */
const reportSchema = z.looseObject({
  version: z.string(),
  config: z.looseObject({ ok: z.boolean(), problems: z.array(z.string()) }),
  database: z.looseObject({ ok: z.boolean(), from: z.int().nullable(), to: z.int().nullable(), message: z.string().nullable() }),
  // releases before these were tried say nothing of them
  databases: z.array(z.looseObject({
    plugin: z.string(), file: z.string().regex(/^(?!\/)(?!.*\.\.)/), ok: z.boolean(), changed: z.boolean(), message: z.string().nullable()
  })).default([]),
  plugins: z.array(z.looseObject({ name: z.string(), ok: z.boolean(), why: z.string().nullable() }))
})
export type TrialReport = z.output<typeof reportSchema>

export interface Trial {
  readonly base: string
  readonly tree: string
  /** Root that the home's folders are below; null is the system's. */
  readonly home: string | null
  /** Its state folder, where the copy is made. */
  readonly state: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly signal: AbortSignal
}

/** Has the new release look at a copy of the home. Throws `system.update_trial_failed` for one that does not even run. */
export async function runTrial ({ base, tree, home, state, env, signal }: Trial): Promise<TrialReport> {
  const program = join(base, tree, 'dist', 'lib', 'svc.cjs')
  const { SVC_LAUNCHED: _, ...rest } = env
  const args = ['doctor', 'upgrade', '--json', ...home === null ? [] : ['--home', home]]
  const { stdout, stderr } = await runTrialProcess({ program, args, state, env: rest, signal })
  signal.throwIfAborted()
  const { data } = reportSchema.safeParse(parsed(stdout))
  if (data !== undefined) return data
  const last = stderr.trim().split('\n').at(-1)?.slice(0, 300) ?? ''
  throw updateError('system.update_trial_failed', `${tree} does not run on this machine${last === '' ? '' : `: ${last}`}`)
}

/** Why a release may not take over; null where it may. A plugin that fell before may stay down. Pure. */
export function objection (report: TrialReport, running: ReadonlySet<string>): string | null {
  const { version, config, database, databases, plugins } = report
  if (!config.ok) return `${version} cannot read this configuration: ${config.problems.join('; ')}`
  if (!database.ok) return `${version} cannot take over the state database: ${database.message ?? 'it does not say why'}`
  const foreign = databases.find(({ plugin, ok }) => !ok && running.has(plugin))
  if (foreign !== undefined) return `${version} cannot take over the database of ${foreign.plugin}: ${foreign.message ?? 'it does not say why'}`
  const lost = plugins.filter(({ name, ok }) => !ok && running.has(name))
  if (lost.length > 0) return `${version} cannot load ${lost.map(({ name, why }) => why === null ? name : `${name} (${why})`).join(', ')}`
  return null
}

function parsed (text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** The databases that a release changes, with the files that SQLite keeps beside each. Pure. */
export function migratedFiles (
  { database, databases }: TrialReport, paths: { readonly database: string, readonly state: string }
): readonly string[] {
  const changed = databases.filter(each => each.changed).map(({ file }) => join(paths.state, file))
  return [...database.from === database.to ? [] : [paths.database], ...changed].flatMap(file => [file, `${file}-wal`, `${file}-shm`])
}
