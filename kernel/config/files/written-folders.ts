import { readdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Paths } from '../../contract/index.js'

type Folders = (paths: Paths) => readonly string[]

const etc: Folders = paths => [paths.etc]
const state: Folders = paths => [paths.state]
const registry: Folders = paths => [dirname(paths.registry)]
const configFolders: Folders = paths => [paths.etc, paths.slots, join(paths.etc, 'mcp-servers'), ...registry(paths)]

/**
 * Every writer through temporary files, by its source file, and the folders that it does that in: what dead writers left
 * there goes at the next start. `test/architecture.test.ts` holds the list against the sources, both ways, so that a new
 * writer cannot be forgotten. No other code sweeps, since what a dead writer left may be needed to finish its change.
 */
export const tempWriters: Readonly<Record<string, Folders>> = {
  'kernel/config/files/journal.ts': etc,
  'kernel/config/write/secrets-writer.ts': paths => [dirname(paths.secretsEnv)],
  'kernel/config/files/staged-file.ts': configFolders,
  'kernel/config/write/svc-writer.ts': etc,
  'kernel/config/files/transaction.ts': configFolders,
  'kernel/hardware/hardware-service.ts': etc,
  'kernel/host/packages/plugin-home.ts': paths => [paths.plugins],
  // of a store elsewhere `kernel-services.ts` sweeps the same folder, once the configuration says where it is
  'kernel/models/registry.ts': paths => [...registry(paths), paths.models, storeTemp(paths.models)],
  'kernel/runtime/engine-hosts.ts': state,
  'kernel/slots/gpu/gpu-arbiter-file.ts': state,
  'kernel/slots/life/kept/slot-state-file.ts': paths => [join(paths.state, 'slots')],
  'kernel/state/engine-keys.ts': state,
  'kernel/state/file-lock.ts': paths => [paths.etc, paths.state, paths.plugins, ...registry(paths)],
  'kernel/state/instance-id.ts': state,
  'cli/offline/config/migrate.ts': etc,
  'cli/offline/import-registry.ts': registry
}

/** Where files of a model store are written before they are renamed. */
export function storeTemp (store: string): string {
  return join(store, '.tmp')
}

/** Every folder in which this gateway writes through temporary files, and the folders of each slot below the state. */
export async function writtenFolders (paths: Paths): Promise<readonly string[]> {
  const states = join(paths.state, 'slots')
  const ofSlots = await readdir(states, { withFileTypes: true }).catch(() => [])
  const folders = Object.values(tempWriters).flatMap(of => of(paths))
  return [...new Set([...folders, ...ofSlots.filter(entry => entry.isDirectory()).map(entry => join(states, entry.name))])]
}
