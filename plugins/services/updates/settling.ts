import { copyFile, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf, pause, type ActivityLog } from 'svc-gateway/plugin'
import { Agent, request } from 'undici'
import { updateError } from './errors.js'
import { dropKept, readSwitch, removeSwitch, writeSwitch, type Switch } from './launcher/switch-file.js'
import { LAUNCHER } from './standing.js'
import { sweepTrials } from './trial-process.js'
import type { Tree, Updater, UpdaterDeps } from './updater.js'

/** Where the launcher of this release lies in its tree. */
const OWN_LAUNCHER = join('dist', 'lib', 'plugins', 'services', 'updates', 'launcher', 'launch.js')
const ASK_AGAIN_MS = 500
const ANSWER_MS = 5_000

export type SettlingDeps = UpdaterDeps & { readonly activity: ActivityLog, readonly updater: Updater }

/** What a gateway does at its start about updates of the one before: confirms, reports a return, takes up what was cut off. */
export async function settle (deps: SettlingDeps): Promise<void> {
  const { updater, releases, log } = deps
  await updater.jobs.open()
  const standing = await releases.standing()
  const tree = standing.kind === 'tree' ? standing : null
  const found = tree === null ? null : await readSwitch(tree.base)
  if (tree !== null) await sweepTrials(deps.config.paths.state)
  for (const job of updater.jobs.list()) {
    if (job.id === found?.job) continue
    if (job.state === 'prepared') await updater.fail(job.id, updateError('system.update_interrupted', 'the gateway was restarted without its launcher'))
    if (job.state !== 'queued' && job.state !== 'running') continue
    if (job.kind === 'update' && tree !== null) void updater.run(job, tree)
    else await updater.fail(job.id, updateError('system.update_interrupted', 'the gateway stopped before it handed over'))
  }
  if (tree === null || found === null) return
  if (found.phase === 'returned') return await tellReturn(deps, tree, found)
  if (found.phase === 'confirmed') return await finish(deps, tree, found)
  // on trial, as a child of the launcher; a gateway that is still the old one was not started by it
  if (found.phase === 'switched' && found.to === tree.tree) {
    void confirm(deps, tree, found).catch((error: unknown) => { if (!deps.signal.aborted) log.error({ err: error }, `the release did not confirm: ${messageOf(error)}`) })
  }
}

/** Confirms once it has run for a while and answers. The launcher goes back where that takes too long. */
async function confirm (deps: SettlingDeps, tree: Tree, found: Switch): Promise<void> {
  const { clock, settings, signal, updater, info, log } = deps
  if (updater.jobs.get(found.job) !== undefined) await updater.jobs.update(found.job, { phase: 'confirming', restarted: true })
  await pause(clock, settings.confirm_s * 1000, signal)
  while (!await answers(info.baseUrl)) await pause(clock, ASK_AGAIN_MS, signal)
  signal.throwIfAborted()
  await writeSwitch(tree.base, { ...found, phase: 'confirmed' })
  await finish(deps, tree, found)
  log.info({ version: info.version, previous: found.from }, `release ${info.version} is confirmed`)
}

/** After it has confirmed: can be cut off and done again. */
async function finish (deps: SettlingDeps, tree: Tree, found: Switch): Promise<void> {
  const { updater, info, activity } = deps
  const { base } = tree
  await updater.remember(base, found.from)
  await copyFile(join(base, found.to, OWN_LAUNCHER), join(base, `${LAUNCHER}.new`))
    .then(() => rename(join(base, `${LAUNCHER}.new`), join(base, LAUNCHER)))
  const job = updater.jobs.get(found.job)
  const kept = new Set([found.from, found.to])
  for (const name of await readdir(base)) {
    if (/^svc-\d/.test(name) && !kept.has(name)) await rm(join(base, name), { recursive: true, force: true })
  }
  await dropKept(base, found.job)
  if (job !== undefined) await updater.jobs.update(job.id, { state: 'applied', phase: 'done', restarted: true, restart_required: false })
  await removeSwitch(base)
  activity.record({ category: 'updates', action: `updates.${job?.kind ?? 'update'}`, target: info.version, actor: 'gateway', outcome: 'ok', message: `replaced ${found.from} with ${found.to}` })
}

async function tellReturn ({ updater, activity }: SettlingDeps, tree: Tree, found: Switch): Promise<void> {
  const { base } = tree
  const message = `${found.to} was started and did not stay: ${found.why ?? 'no reason is known'}; ${found.from} runs again`
  const error = updateError('system.update_returned', message)
  if (updater.jobs.get(found.job) !== undefined) {
    await updater.jobs.update(found.job, { restarted: true, restart_required: false })
    await updater.fail(found.job, error)
  }
  await dropKept(base, found.job)
  if (updater.jobs.get(found.job)?.kind === 'update') await updater.discard(tree, found.to)
  await removeSwitch(base)
  activity.record({ category: 'updates', action: 'updates.return', target: found.to, actor: 'gateway', severity: 'error', outcome: 'error', error: message })
}

/** Over its own socket, as clients come. */
async function answers (baseUrl: string | null): Promise<boolean> {
  if (baseUrl === null) return false
  const dispatcher = new Agent()
  try {
    const { statusCode, body } = await request(new URL('/api/updates/state', baseUrl), { dispatcher, headersTimeout: ANSWER_MS, bodyTimeout: ANSWER_MS })
    await body.dump()
    return statusCode === 200
  } catch {
    return false
  } finally {
    await dispatcher.destroy()
  }
}
