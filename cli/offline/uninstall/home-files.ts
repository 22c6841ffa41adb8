import { lstat, readdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Paths } from '../../../kernel/contract/index.js'
import { loadSvc } from '../../../kernel/config/load/load-parts.js'
import { homeEntries } from '../../../plugins/services/companions/words.js'
import { storeOf } from '../../../kernel/models/store-folder.js'
import { fileThing, removeEmpty, targetOfLink, type Found, type Kept, type Thing } from './thing.js'
import { svcSchema } from '../svc-schema.js'

/** Names below etc/svc, or what they begin with: locks, backups and temporary files have the name of their file. */
const CONFIGURATION = [
  'svc.toml', 'api.env', 'hardware.json', 'manifest.json', 'profiles.toml', 'stacks.toml', 'providers.toml', 'upstreams.toml',
  'capabilities.toml', 'proxmox.json', 'config.', 'slots', 'agents', 'mcp-servers', 'engines', ...homeEntries.configuration
]
/** The same below var/lib/svc. */
const STATE = [
  'svc.db', 'svc.previous', 'engine-key-seed', 'engine-hosts.json', 'gateway.lock', 'gateway.alive', 'first_run_done', 'gpu-arbiter',
  'runtime', 'images', 'plugin-state', 'plugins', 'models', 'registry', 'engines', 'cache', 'update-jobs', 'memory', 'slots', 'hub',
  'spool', 'upgrade-', 'model-pull-jobs', 'agents', 'stacks', 'activity.db', 'dashboard-layout', 'instance-id', ...homeEntries.state
]
/** Goes last: it says which containers are those of this home. */
const LAST = 'instance-id'

/** Configuration and data of a home, entry by entry. What is not the gateway's stays, and with it the folder. */
export async function homeFiles (paths: Paths, env: Readonly<Record<string, string | undefined>>): Promise<Found> {
  const configuration = await entriesOf('configuration', paths.etc, CONFIGURATION)
  const data = await entriesOf('data', paths.state, STATE)
  const svc = (await loadSvc({ paths, schema: svcSchema }, null)).value ?? svcSchema.parse({})
  const store = storeOf(env, svc.models, paths)
  const isElsewhere = store !== paths.models || !store.startsWith(`${paths.state}/`)
  const kept: readonly Kept[] = isElsewhere && await isThere(store) ? [{ name: store, why: 'the model store is outside of the home' }] : []
  return {
    things: [...configuration.things, ...data.things],
    kept: [...configuration.kept, ...data.kept, ...kept]
  }
}

/** Whether a folder is a home of a gateway. */
export async function isHome (folder: string): Promise<boolean> {
  return await isThere(join(folder, 'var/lib/svc/instance-id')) || await isThere(join(folder, 'etc/svc'))
}

async function entriesOf (kind: Thing['kind'], folder: string, known: readonly string[]): Promise<Found> {
  const target = await targetOfLink(folder)
  if (target !== null) return { things: [fileThing(kind, folder)], kept: [ledTo(folder, target)] }
  const names = await readdir(folder).catch(() => null)
  if (names === null) return { things: [], kept: [] }
  const isKnown = (name: string): boolean => known.some(each => name.replace(/^\./, '').startsWith(each))
  const ours = names.filter(isKnown).toSorted((a, b) => Number(a === LAST) - Number(b === LAST) || a.localeCompare(b))
  const places = ours.map(name => join(folder, name))
  const links = await Promise.all(places.map(async name => ({ name, target: await targetOfLink(name) })))
  return {
    things: [
      ...places.map(place => fileThing(kind, place)),
      ...ours.length === names.length ? [{ kind, name: folder, remove: () => removeEmpty(folder, ...foldersAbove(folder)) }] : []
    ],
    kept: [
      ...links.flatMap(({ name, target: to }) => to === null ? [] : [ledTo(name, to)]),
      ...names.filter(name => !isKnown(name)).map(name => ({ name: join(folder, name), why: 'it does not belong to the gateway' }))
    ]
  }
}

function ledTo (link: string, target: string): Kept {
  return { name: target, why: `${link} is a link to it` }
}

/** Of a home of its own: `etc`, `var/lib`, `var` and the home. The system keeps its folders. */
function foldersAbove (folder: string): readonly string[] {
  const [, home = ''] = /^(.*)\/(?:etc|var\/lib)\/svc$/.exec(folder) ?? []
  if (home === '') return []
  const above: string[] = []
  for (let at = dirname(folder); at.startsWith(home); at = dirname(at)) above.push(at)
  return above
}

function isThere (path: string): Promise<boolean> {
  return lstat(path).then(() => true, () => false)
}
