import { randomBytes } from 'node:crypto'
import { lstat, mkdir, readdir, readFile, readlink, rename, symlink, unlink } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { parseToml } from '../../../kernel/config/toml/toml-file.js'
import type { Model, Paths } from '../../../kernel/contract/index.js'
import { readRegistry } from '../../../kernel/models/registry-file.js'
import type { Cli } from '../../cli.js'
import { CliFailure, usageFailure } from '../../failure.js'
import type { Output } from '../../terminal/output.js'
import { requireHome } from '../home/home-of.js'
import { homeProviders } from '../home-providers.js'
import { ModelLayout } from './model-layout.js'
import { actions, planLayout, type Present, type Step } from './plan.js'
import { modelsBelow } from './sources.js'

export interface LayoutOptions {
  readonly apply?: true
  readonly force?: true
  readonly registry?: string
  readonly mountRoot: string
  readonly canonicalRoot?: string
  readonly json?: true
}

/**
 * Links the models of an older installation into the folders of the present layout. Makes symbolic links and nothing else;
 * what lies below the old root is never touched. Without `apply` it only says what it would do.
 */
export async function migrateLayout (cli: Cli, paths: Paths, options: LayoutOptions): Promise<void> {
  const { out } = cli
  const from = cli.process.cwd()
  if (options.apply === true && options.canonicalRoot === undefined) await requireHome(paths)
  const root = options.canonicalRoot === undefined ? paths.models : resolve(from, options.canonicalRoot)
  const mountRoot = resolve(from, options.mountRoot)
  await requireOrdinaryFolder(root)
  const models = await registered(options.registry === undefined ? paths.registry : resolve(from, options.registry))
  const providers = await homeProviders(paths)
  const layout = new ModelLayout(providers.list().flatMap(({ modelFolders = [] }) => modelFolders))
  const sources = await modelsBelow(mountRoot, layout.collections)
  const there = await presentBelow(root, layout)
  const present = (link: string): Present => there.get(link) ?? null
  const steps = planLayout({ layout, sources, mountRoot, models, present, force: options.force === true })
  if (options.apply === true) for (const step of steps) await carryOut(root, step)
  if (options.json === true) out.json({ applied: options.apply === true, mount_root: mountRoot, canonical_root: root, steps })
  else print(out, steps, { layout, root, mountRoot, applied: options.apply === true })
  const refused = steps.filter(({ action }) => action === 'would-overwrite').length
  if (options.apply === true && refused > 0) throw new CliFailure(`${refused} links were not created: their paths are taken`)
}

/** Links below a root that is one itself, or shows another folder, would end up where they are not looked for. */
async function requireOrdinaryFolder (root: string): Promise<void> {
  const stats = await lstat(root).catch(() => null)
  if (stats?.isSymbolicLink() === true) throw usageFailure(`${root} is a symbolic link; pass its target with --canonical-root`)
  const mounts = await readFile('/proc/self/mountinfo', 'utf8').catch(() => '')
  const isBound = mounts.split('\n').some(line => {
    const [, , , source, point] = line.split(' ')
    return point?.replace(/\\040/g, ' ') === root && source !== '/'
  })
  if (isBound) throw usageFailure(`${root} is a bind mount of another folder; pass that one with --canonical-root`)
}

async function registered (path: string): Promise<readonly Model[]> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return ''
    throw error
  })
  return [...readRegistry(parseToml(text)).models.values()]
}

async function presentBelow (root: string, { leaves }: ModelLayout): Promise<ReadonlyMap<string, Present>> {
  const found = new Map<string, Present>()
  for (const leaf of leaves) {
    for (const name of await readdir(join(root, leaf)).catch(() => [])) {
      found.set(`${leaf}/${name}`, await readlink(join(root, leaf, name)).catch(() => 'file'))
    }
  }
  return found
}

/** A new link fails where something is by now; one that replaces another is renamed into its place. */
async function carryOut (root: string, { action, link, target }: Step): Promise<void> {
  if (action !== 'create' && action !== 'overwrite') return
  const path = join(root, link)
  await mkdir(dirname(path), { recursive: true })
  if (action === 'create') return await symlink(target, path)
  const temp = `${path}.${randomBytes(4).toString('hex')}.tmp`
  await symlink(target, temp)
  try {
    await rename(temp, path)
  } catch (error) {
    await unlink(temp).catch(() => undefined)
    throw error
  }
}

interface Heading { readonly layout: ModelLayout, readonly root: string, readonly mountRoot: string, readonly applied: boolean }

function print (out: Output, steps: readonly Step[], { layout, root, mountRoot, applied }: Heading): void {
  if (steps.length === 0) return out.line(`There are no models below ${mountRoot}.`)
  out.table([
    { title: 'ACTION', cell: ({ action }) => action },
    { title: 'LINK', cell: ({ link }) => link || '-' },
    { title: 'TARGET', cell: ({ target }) => target, flexible: true, expendable: 3 },
    { title: 'SOURCE', cell: ({ source }) => source, flexible: true, expendable: 2 },
    { title: 'REASON', cell: ({ reason }) => reason, flexible: true, expendable: 1 }
  ], steps)
  out.line()
  for (const leaf of layout.leaves) {
    const own = steps.filter(step => step.leaf === leaf)
    const counts = actions.map(action => ({ action, count: own.filter(step => step.action === action).length }))
    const told = counts.filter(({ count }) => count > 0).map(({ action, count }) => `${count} ${action}`)
    if (own.length > 0) out.line(`${leaf}: ${told.join(', ')}`)
  }
  const unknown = steps.filter(({ action }) => action === 'unclassified').length
  if (unknown > 0) out.note(`Warning: ${unknown} of ${steps.length} are skipped because their use is unknown; register them first.`)
  if (!applied) out.line(`Nothing was changed. Use --apply to create the links below ${root}.`)
}
