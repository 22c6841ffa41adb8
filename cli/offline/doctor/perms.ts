import { constants, type Stats } from 'node:fs'
import { lstat, open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { svcConfigSchema, type Paths } from '../../../kernel/contract/index.js'
import { loadSvc } from '../../../kernel/config/load/load-parts.js'
import { storeOf } from '../../../kernel/models/store-folder.js'
import type { Cli } from '../../cli.js'
import { CliFailure } from '../../failure.js'
import { oneLine, padTo } from '../../terminal/text-width.js'
import { judgePath, type PathFacts, type PathVerdict } from './ownership.js'
import { svcSchema } from '../svc-schema.js'

export interface PermsOptions {
  readonly json?: true
  readonly fix?: true
}

/** Who owns what of a home. The owner of the state folder is the user of the gateway. */
export async function checkPerms (cli: Cli, paths: Paths, options: PermsOptions): Promise<void> {
  const { out } = cli
  if (options.fix === true && process.getuid?.() !== 0) {
    throw new CliFailure('--fix needs root', { hints: ['Run it with sudo, and with --home where SVC_HOME is set.'] })
  }
  const root = await lstat(paths.state).catch((error: NodeJS.ErrnoException) => {
    throw new CliFailure(`${paths.state} cannot be read (${error.code ?? error.message})`, { hints: ['`svc serve` creates it.'] })
  })
  const owner = { uid: root.uid, gid: root.gid }
  const found = (await pathsOf(cli, paths)).map(facts => judgePath(facts, owner))
  const rows = options.fix === true ? await Promise.all(found.map(row => repaired(cli, row))) : found
  const drifted = rows.filter(({ status }) => status === 'drift')
  if (options.json === true) out.json(rows.map(({ path, label, status, detail }) => ({ path, label, status, detail })))
  else printRows(cli, rows)
  if (drifted.length > 0) {
    throw new CliFailure(`${drifted.length} of ${rows.length} paths have the wrong owner or mode`,
      { hints: options.fix === true ? [] : ['`sudo svc doctor perms --fix` fixes them.'] })
  }
}

/** The configuration whole; of the state what stands at its top and the registry. Models and packages are left alone. */
async function pathsOf (cli: Cli, paths: Paths): Promise<readonly PathFacts[]> {
  const svc = (await loadSvc({ paths, schema: svcSchema }, null)).value ?? svcConfigSchema.parse({})
  const seen = new Map<string, string>([[paths.etc, 'configuration'], [paths.state, 'state'], [storeOf(cli.env, svc.models, paths), 'models']])
  const secrets = [paths.secretsEnv, join(paths.etc, 'proxmox.json')]
  await addBelow(seen, paths.etc, 'configuration', 2)
  await addBelow(seen, paths.state, 'state', 1)
  await addBelow(seen, join(paths.state, 'registry'), 'registry', 1)
  return await Promise.all([...seen].map(async ([path, label]) => {
    const stats = await lstat(path).catch(() => null)
    const isSecret = secrets.includes(path) || path.startsWith(paths.database)
    return { path, label, isSecret, stats: stats === null ? null : { ...stats, links: stats.nlink, kind: kindOf(stats) } }
  }))
}

async function addBelow (seen: Map<string, string>, folder: string, label: string, depth: number): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true }).catch(() => [])) {
    const path = join(folder, entry.name)
    if (!seen.has(path)) seen.set(path, label)
    if (entry.isDirectory() && depth > 1) await addBelow(seen, path, label, depth - 1)
  }
}

function kindOf (stats: Stats): NonNullable<PathFacts['stats']>['kind'] {
  if (stats.isSymbolicLink()) return 'link'
  return stats.isFile() ? 'file' : stats.isDirectory() ? 'folder' : 'other'
}

/** The open file is what is changed, so that nothing can be put in its place meanwhile. */
async function repaired (cli: Cli, row: PathVerdict): Promise<PathVerdict> {
  const { repair } = row
  if (repair === null) return row
  try {
    const file = await open(row.path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    try {
      const stats = await file.stat()
      if (stats.isFile() && stats.nlink > 1) return row
      await file.chown(repair.uid, repair.gid)
      await file.chmod(repair.mode)
    } finally {
      await file.close()
    }
    return { ...row, status: 'ok', detail: `fixed: ${row.detail}`, repair: null }
  } catch (error) {
    cli.out.note(`${row.path} cannot be fixed (${(error as NodeJS.ErrnoException).code ?? String(error)})`)
    return row
  }
}

function printRows ({ out }: Cli, rows: readonly PathVerdict[]): void {
  const shown = rows.filter(({ status, detail }) => status === 'drift' || detail.startsWith('fixed'))
  if (shown.length === 0) return out.line(`None of ${rows.length} paths has the wrong owner or mode.`)
  // paths are long, and a cut path is of no use
  for (const { status, path, detail } of shown) {
    out.line(`${out.paint(status === 'ok' ? 'green' : 'red', padTo(status, 5))} ${oneLine(path)}: ${detail}`)
  }
}
