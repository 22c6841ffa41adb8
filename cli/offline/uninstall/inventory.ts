import { readdir, readFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { resolvePaths } from '../../../kernel/config/paths.js'
import { CliFailure } from '../../failure.js'
import { gatewayAt } from '../home/running-gateway.js'
import { enginesOf } from './engines.js'
import { homeFiles, isHome } from './home-files.js'
import { ownReleases, ownTree, releasesIn } from './releases.js'
import { callersCaches, markedFiles, releasesOf, systemUser, unitFiles, unitOf, type SystemPlace } from './system-files.js'
import { merged, removeEmpty, type Found, type Kept } from './thing.js'

export interface Extent extends SystemPlace {
  /** Null is the system's. */
  readonly home: string | null
  readonly purge: boolean
  /** Of a development tree: its configuration and data stay. */
  readonly keepData: boolean
  /** Is told of a gateway that runs on a home and that no unit stops. Returns where that keeps nothing from being listed. */
  readonly onRunning: (failure: unknown) => void
}

const none: Found = { things: [], kept: [] }

/**
 * What an installation on this machine has: the unit, engines, files of the system, releases, and for a purge configuration,
 * data, images and the user.
 */
export async function machineThings ({ env, root, home, purge, onRunning }: Extent): Promise<Found> {
  const place: SystemPlace = { root, env }
  const paths = pathsOf(env, root, home)
  const unit = await unitOf(place, home)
  const stopped = (): Promise<void> => requireStopped(paths)
  if (unit === null || root !== '') await stopped().catch(onRunning)
  const isSystem = home === null
  const folders = [...isSystem ? [await ownReleases(), join(root, '/usr/lib/svc')] : [join(home, 'usr-lib/svc')], unit === null ? null : releasesOf(unit)]
  const path = isSystem ? ['/usr/local/bin', '/usr/bin', ...(env.PATH ?? '').split(delimiter).filter(each => each !== '')].map(each => join(root, each)) : []
  const releases = await Promise.all([...new Set(folders)].map(folder => folder === null ? none : releasesIn(folder, path)))
  return merged(
    unit === null ? none : await unitFiles(place, unit, stopped),
    await enginesOf(paths, env, { images: purge }),
    isSystem ? await markedFiles(place, await announcements(paths.secretsEnv, env), purge) : await callersCaches(env),
    purge ? await homeFiles(paths, env) : await stays(paths.etc, paths.state),
    purge && isSystem ? { things: await systemUser(place), kept: [] } : none,
    ...releases,
    { things: [], kept: root === '' ? await elsewhere() : [] }
  )
}

/** The homes below a folder, and releases in it: what a checkout made for itself. */
export async function developmentThings ({ env, home: prefix, purge, keepData, onRunning }: Extent): Promise<Found> {
  const below = await readdir(prefix!).catch(() => [])
  const candidates = [prefix!, ...below.map(name => join(prefix!, name))]
  const are = await Promise.all(candidates.map(isHome))
  const homes = candidates.filter((_, i) => are[i]).map(home => resolvePaths(env, { home }))
  await Promise.all(homes.map(paths => requireStopped(paths).catch(onRunning)))
  const found = await Promise.all(homes.map(async paths => merged(
    await enginesOf(paths, env, { images: purge }),
    keepData ? await stays(paths.etc, paths.state) : await homeFiles(paths, env)
  )))
  const releases = await releasesIn(join(prefix!, 'usr-lib/svc'), [])
  const all = merged(...found, releases)
  if (all.things.length === 0) return all
  return { ...all, things: [...all.things, { kind: 'data', name: prefix!, remove: () => removeEmpty(join(prefix!, 'usr-lib'), prefix!).catch(() => undefined) }] }
}

function pathsOf (env: Extent['env'], root: string, home: string | null): ReturnType<typeof resolvePaths> {
  const place = home ?? (root === '' ? null : root)
  return place === null ? { ...resolvePaths({ ...env, SVC_HOME: undefined }) } : resolvePaths(env, { home: place })
}

async function requireStopped (paths: ReturnType<typeof resolvePaths>): Promise<void> {
  const found = await gatewayAt(paths)
  if (found.state === 'none') return
  const where = paths.home ?? 'this system'
  if (found.state === 'closed') throw new CliFailure(`whether a gateway runs on ${where} cannot be determined (${found.code})`, { hints: ['Run it as the user of the gateway, or as root.'] })
  throw new CliFailure(`a gateway runs on ${where} (process ${found.pid}), so nothing is removed`, { hints: ['Stop it first.'] })
}

async function stays (...folders: readonly string[]): Promise<Found> {
  const there = await Promise.all(folders.map(folder => readdir(folder).then(() => true, () => false)))
  return { things: [], kept: folders.filter((_, i) => there[i]).map(name => ({ name, why: '--purge removes it' })) }
}

/** The folder of announcements that the gateway was given; null for the usual one. */
async function announcements (secrets: string, env: Extent['env']): Promise<string | null> {
  const text = await readFile(secrets, 'utf8').catch(() => '')
  return env.SVC_AVAHI_SERVICES_DIR ?? /^SVC_AVAHI_SERVICES_DIR=["']?([^"'\n]+)/m.exec(text)?.[1] ?? null
}

/** A program that came another way is not taken away here. */
async function elsewhere (): Promise<readonly Kept[]> {
  if (await ownReleases() !== null) return []
  const tree = await ownTree()
  if (tree.split('/').includes('node_modules')) return [{ name: tree, why: 'npm uninstall -g svc-gateway removes it' }]
  return [{ name: tree, why: 'it is a checkout or was unpacked manually: delete it yourself' }]
}
